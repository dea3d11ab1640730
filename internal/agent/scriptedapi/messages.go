package scriptedapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// messages implements the Messages API, which Claude Code uses.
type messages struct{}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// A content is a list of blocks. A plain string stands for one text block.
type content []block

type block struct {
	Type      string  `json:"type"`
	Text      string  `json:"text"`
	ToolUseID string  `json:"tool_use_id"`
	Content   content `json:"content"`
}

func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	return json.Unmarshal(b, (*[]block)(c))
}

// text returns the text of all blocks, without the reminders that Claude Code adds for the model.
// Codex has other types of text for input and output.
func (c content) text() string {
	var all []string
	for _, b := range c {
		if strings.HasSuffix(b.Type, "text") && !strings.HasPrefix(strings.TrimSpace(b.Text), "<system-reminder>") {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}

func (messages) read(r *Request) error {
	var ask struct {
		Model    string    `json:"model"`
		Stream   bool      `json:"stream"`
		Messages []message `json:"messages"`
		Tools    []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(r.Body, &ask); err != nil {
		return err
	}
	r.Model, r.Stream = ask.Model, ask.Stream
	for _, t := range ask.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range ask.Messages {
		if m.Role == "user" {
			r.heard(m.Content)
		}
	}
	return nil
}

// heard records the text of the user, or the results of tools.
func (r *Request) heard(c content) {
	var results []string
	for _, b := range c {
		if b.Type == "tool_result" {
			results, r.answers = append(results, b.Content.text()), b.ToolUseID
		}
	}
	text := c.text()
	switch {
	case results != nil:
		r.Results = results
	case text != "":
		r.Prompt, r.Results = text, nil
	}
}

func (messages) write(s *Server, w http.ResponseWriter, ask *Request, at stepIndex, step Step) {
	if ask.Stream {
		s.stream(w, ask.Model, at, step)
	} else {
		s.whole(w, ask.Model, at, step)
	}
}

// message returns a step as an object of the API.
func (s *Server) message(model string, at stepIndex, step Step) object {
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

// whole sends the answer in one piece.
func (s *Server) whole(w http.ResponseWriter, model string, at stepIndex, step Step) {
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
func (s *Server) stream(w http.ResponseWriter, model string, at stepIndex, step Step) {
	send := events(w)
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

// abort flushes the output and cuts the connection.
func abort(w http.ResponseWriter) {
	http.NewResponseController(w).Flush() // fails only if the client is gone
	panic(http.ErrAbortHandler)
}

// halves cuts a text in two, between characters.
func halves(text string) []string {
	runes := []rune(text)
	return []string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}
