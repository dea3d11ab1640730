package supervisor

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/internal/encoding/httpstatus"
)

// These are the longest recorded texts, in bytes.
const (
	maxPath   = 4096
	maxReason = 4096
)

// routes serves the requests over HTTP and passes them to the Handler.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /grant", func(w http.ResponseWriter, r *http.Request) {
		view, err := s.handler.Grant(r.Context())
		answer(w, view, err)
	})
	mux.HandleFunc("POST /gaps", func(w http.ResponseWriter, r *http.Request) {
		var gap gapBody
		answer(w, nil, s.record(w, r, &gap, func(ctx context.Context) error {
			if err := checkText("path", gap.Path, maxPath); err != nil {
				return err
			}
			if err := checkText("reason", gap.Reason, maxReason); err != nil {
				return err
			}
			return s.handler.Gap(ctx, gap.Path, gap.Reason)
		}))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			return // the server is stopping, and the client does not read an answer
		}
		defer s.busy.Done()
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
			answer(w, nil, &lockkeeper.RefusedError{Act: r.Method + " " + r.URL.Path, Reason: "wrong token", Next: "send the token in " + TokenVariable})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// record reads a body and passes it on, unless the command has reached its limit of records.
func (s *Server) record(w http.ResponseWriter, r *http.Request, body any, act func(context.Context) error) error {
	if s.records.Add(1) > maxRecords {
		return &lockkeeper.RefusedError{Act: "another record", Reason: fmt.Sprintf("the limit is %d per command", maxRecords), Next: "name the other files in your answer"}
	}
	from := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	from.DisallowUnknownFields()
	if err := from.Decode(body); err != nil {
		return &lockkeeper.InputError{Field: "body", Reason: err.Error()}
	}
	return act(r.Context())
}

func checkText(field, text string, most int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return &lockkeeper.InputError{Field: field, Reason: "empty"}
	case len(text) > most:
		return &lockkeeper.InputError{Field: field, Value: text, Reason: fmt.Sprintf("longer than %d bytes", most)}
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return &lockkeeper.InputError{Field: field, Value: text, Reason: "not plain text"}
	}
	return nil
}

// answer sends the outcome of a request. It ignores errors, because then the client is gone.
func answer(w http.ResponseWriter, body any, err error) {
	status := http.StatusOK
	if err != nil {
		body, status = errorBody{Error: err.Error(), Code: lockkeeper.CodeOf(err)}, httpstatus.Of(err)
	}
	if body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
