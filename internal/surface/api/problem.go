package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/encoding/httpstatus"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/facts"
)

// Error codes of the server itself.
const (
	codeUnauthorized lockkeeper.Code = "unauthorized"       // not logged in
	codeForbidden    lockkeeper.Code = "forbidden"          // the role is insufficient
	codeHost         lockkeeper.Code = "unknown_host"       // unknown host name
	codeOrigin       lockkeeper.Code = "cross_origin"       // request from another site, or without an origin
	codeNotFound     lockkeeper.Code = "not_found"          // unknown address or object
	codeMethod       lockkeeper.Code = "method_not_allowed" // wrong method
	codeTooLarge     lockkeeper.Code = "too_large"
	codeMedia        lockkeeper.Code = "media_type" // the body is not JSON
	codeReused       lockkeeper.Code = "key_reused" // the key belongs to another request
	codeTooMany      lockkeeper.Code = "too_many"   // too many login attempts
	codeBusy         lockkeeper.Code = "busy"       // a limit is reached
	codeStale        lockkeeper.Code = "stale"      // the state changed since the person saw it
	codeWrongStatus  lockkeeper.Code = "wrong_status"
	codeConfined     lockkeeper.Code = "confined"      // the client runs in a sandbox
	codeUnseen       lockkeeper.Code = "unseen_client" // the client may run in a sandbox
)

// statuses maps these codes to HTTP statuses; package httpstatus maps all others.
var statuses = map[lockkeeper.Code]int{
	codeUnauthorized: http.StatusUnauthorized,
	codeForbidden:    http.StatusForbidden,
	codeHost:         http.StatusMisdirectedRequest,
	codeOrigin:       http.StatusForbidden,
	codeNotFound:     http.StatusNotFound,
	codeMethod:       http.StatusMethodNotAllowed,
	codeTooLarge:     http.StatusRequestEntityTooLarge,
	codeMedia:        http.StatusUnsupportedMediaType,
	codeReused:       http.StatusConflict,
	codeTooMany:      http.StatusTooManyRequests,
	codeBusy:         http.StatusServiceUnavailable,
	codeStale:        http.StatusConflict,
	codeWrongStatus:  http.StatusConflict,
	codeConfined:     http.StatusForbidden,
	codeUnseen:       http.StatusForbidden,
}

// A refusal is an error of the server itself about a request.
type refusal struct {
	code   lockkeeper.Code
	reason string
	next   string
	after  time.Duration // until a retry makes sense; 0: unknown
	allow  string        // allowed methods
}

func (e *refusal) Error() string {
	return lockkeeper.JoinNext(e.reason, e.next)
}

func (e *refusal) NextStep() string { return e.next }

func (e *refusal) Code() lockkeeper.Code { return e.code }

// A Problem is the body of an error response.
type Problem struct {
	Error struct {
		Code    lockkeeper.Code `json:"code"`
		Message string          `json:"message"`
		Next    string          `json:"next,omitempty"`
	} `json:"error"` // together with further facts that depend on the code
}

// codeOf returns the code of an error. Stale versions and wrong statuses have codes of their
// own here, because clients act on them.
func codeOf(err error) lockkeeper.Code {
	var stale *progress.StaleError
	var elsewhere *acts.WrongStatusError
	switch {
	case errors.As(err, &stale):
		return codeStale
	case errors.As(err, &elsewhere):
		return codeWrongStatus
	}
	return lockkeeper.CodeOf(err)
}

// hints are the next steps of errors that carry none, because they depend on the surface.
var hints = map[lockkeeper.Code]string{
	lockkeeper.CodeBlocked: "repeat the request with wait_seconds to wait for these locks, or after they are released",
	lockkeeper.CodeTimeout: "GET " + api + "/locks shows who holds them; then repeat the request",
}

func factsOf(err error) map[string]any {
	facts := facts.Of(err)
	var elsewhere *acts.WrongStatusError
	if errors.As(err, &elsewhere) {
		facts["unit"], facts["status"], facts["phase"] = elsewhere.Unit, elsewhere.Status, elsewhere.Phase
	}
	facts["code"], facts["message"] = codeOf(err), lockkeeper.Message(err)
	if next := cmp.Or(lockkeeper.NextStep(err), hints[lockkeeper.CodeOf(err)]); next != "" {
		facts["next"] = next
	}
	return facts
}

// notFound is an error about the object that an address names.
type notFound struct{ error }

func (e *notFound) Unwrap() error { return e.error }

func (e *notFound) Code() lockkeeper.Code { return codeNotFound }

// partsRefused holds the errors of the parts of one request.
type partsRefused struct{ parts []error }

func (e *partsRefused) Error() string { return errors.Join(e.parts...).Error() }

// Unwrap returns the first error, which decides the code.
func (e *partsRefused) Unwrap() error { return e.parts[0] }

func fail(w http.ResponseWriter, r *http.Request, err error) int {
	code := codeOf(err)
	status, known := statuses[code]
	if !known {
		status = httpstatus.OfCode(code)
	}
	var input *lockkeeper.InputError
	if errors.As(err, &input) && input.Value != "" && inPath(r, input.Value) {
		code, status = codeNotFound, http.StatusNotFound // the address names an unknown object
	}
	facts := factsOf(err)
	facts["code"] = code
	var several *partsRefused
	if errors.As(err, &several) {
		facts["refused"] = listOf(several.parts)
	}
	var said *refusal
	if errors.As(err, &said) {
		if said.after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(said.after.Seconds()+0.999)))
		}
		if said.allow != "" {
			w.Header().Set("Allow", said.allow)
		}
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="lockkeeper"`)
	}
	if isLFS(r) {
		failLFS(w, status, err)
		return status
	}
	writeJSON(w, status, map[string]any{"error": facts})
	return status
}

// listOf returns the JSON fields of several errors.
func listOf(errs []error) []map[string]any {
	list := make([]map[string]any, len(errs))
	for i, err := range errs {
		list[i] = factsOf(err)
	}
	return list
}

func inPath(r *http.Request, value string) bool {
	for part := range strings.SplitSeq(strings.Trim(r.Pattern, "/"), "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok && r.PathValue(strings.TrimRight(name, ".}")) == value {
			return true
		}
	}
	return false
}

// writeJSON writes a value as the response. It ignores write errors: the client has gone.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, fmt.Appendf(nil, `{"error":{"code":"failed","message":%q}}`, "cannot encode the response: "+err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

// isGone reports whether an error means that the client has disconnected.
func isGone(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, context.Canceled)
}
