package scriptedapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// answer plays a step.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, ask *Request, at place, step Step) {
	if step.Wait > 0 && !s.pause(r, time.After(step.Wait)) {
		return
	}
	switch {
	case step.Hang:
		s.pause(r, nil)
	case step.Fail != nil:
		step.Fail.write(w)
	case ask.Stream:
		s.stream(w, ask.Model, at, step)
	default:
		s.whole(w, ask.Model, at, step)
	}
}

// pause waits, and reports whether there is somebody left to answer.
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

// encode is JSON of values that have it.
func encode(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // the script holds something that JSON cannot say
	}
	return b
}

// message is a step as an object of the API.
func (s *Server) message(model string, at place, step Step) object {
	blocks, stop := []any{}, "end_turn"
	if step.Text != "" {
		blocks = append(blocks, object{"type": "text", "text": step.Text})
	}
	for _, t := range step.Tools {
		stop = "tool_use"
		blocks = append(blocks, object{"type": "tool_use", "id": at.toolID(s.ids.Add(1)), "name": t.Name, "input": t.Input})
	}
	if step.Stop != "" {
		stop = step.Stop
	}
	used := step.Usage
	if used == (Usage{}) {
		used = Usage{Input: 100, Output: 20, CacheRead: 7, CacheWrite: 3}
	}
	return object{"id": fmt.Sprintf("msg_%06d", s.ids.Add(1)), "type": "message", "role": "assistant", "model": model,
		"content": blocks, "stop_reason": stop, "stop_sequence": nil, "usage": used}
}

// whole answers in one piece.
func (s *Server) whole(w http.ResponseWriter, model string, at place, step Step) {
	body := encode(s.message(model, at, step))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if step.Cut {
		w.Write(body[:len(body)/2])
		abort(w)
	}
	w.Write(body)
}

// stream answers with server-sent events.
func (s *Server) stream(w http.ResponseWriter, model string, at place, step Step) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, fields object) {
		fields["type"] = kind
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, encode(fields))
	}
	whole := s.message(model, at, step)
	start := maps.Clone(whole)
	start["content"], start["stop_reason"] = []any{}, nil
	send("message_start", object{"message": start})
	send("ping", object{})
	for i, b := range whole["content"].([]any) {
		begun := maps.Clone(b.(object))
		var pieces []object
		if begun["type"] == "text" {
			for _, piece := range halves(step.Text) {
				pieces = append(pieces, object{"type": "text_delta", "text": piece})
			}
			begun["text"] = ""
		} else {
			for _, piece := range halves(string(encode(begun["input"]))) {
				pieces = append(pieces, object{"type": "input_json_delta", "partial_json": piece})
			}
			begun["input"] = object{}
		}
		send("content_block_start", object{"index": i, "content_block": begun})
		for _, piece := range pieces {
			send("content_block_delta", object{"index": i, "delta": piece})
			if step.Cut {
				abort(w)
			}
		}
		send("content_block_stop", object{"index": i})
	}
	send("message_delta", object{"delta": object{"stop_reason": whole["stop_reason"], "stop_sequence": nil}, "usage": whole["usage"]})
	send("message_stop", object{})
}

// abort cuts the connection after what was written.
func abort(w http.ResponseWriter) {
	http.NewResponseController(w).Flush() // in vain only where the client has gone
	panic(http.ErrAbortHandler)
}

// halves cuts a text in two, between characters.
func halves(text string) []string {
	runes := []rune(text)
	return []string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}
