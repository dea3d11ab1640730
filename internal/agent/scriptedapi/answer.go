package scriptedapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// answer plays a step.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, speaks dialect, ask *Request, at place, step Step) {
	if step.Wait > 0 && !s.pause(r, time.After(step.Wait)) {
		return
	}
	switch {
	case step.Hang:
		s.pause(r, nil)
	case step.Fail != nil:
		step.Fail.write(w)
	default:
		speaks.write(s, w, ask, at, step)
	}
}

// pause waits, and reports whether the client is still connected.
func (s *Server) pause(r *http.Request, over <-chan time.Time) bool {
	select {
	case <-over:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

func (f *Fail) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(f.Status)
	if f.Body != "" {
		fmt.Fprint(w, f.Body)
		return
	}
	fmt.Fprintf(w, "%s", encode(object{"type": "error", "error": object{"type": f.Type, "message": f.Message}, "request_id": "req_scripted"}))
}

type object = map[string]any

// encode returns a value as JSON.
func encode(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // the script has a value that JSON cannot represent
	}
	return b
}

// events begins a stream of server-sent events. The returned function sends one.
func events(w http.ResponseWriter) func(kind string, fields object) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(kind string, fields object) {
		fields["type"] = kind
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, encode(fields))
	}
}
