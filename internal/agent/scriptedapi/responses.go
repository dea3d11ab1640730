package scriptedapi

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// responses implements the Responses API, which Codex uses.
type responses struct{}

// read uses the last text of the user as the prompt. Before it, Codex describes the directory
// and its instructions in the user's name.
func (responses) read(r *Request) error {
	var ask struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Input  []struct {
			Type    string  `json:"type"`
			Role    string  `json:"role"`
			Content content `json:"content"`
			CallID  string  `json:"call_id"`
			Output  content `json:"output"`
		} `json:"input"`
	}
	if err := json.Unmarshal(r.Body, &ask); err != nil {
		return err
	}
	r.Model, r.Stream = ask.Model, ask.Stream
	for _, item := range ask.Input {
		switch item.Type {
		case "message":
			if item.Role == "user" {
				r.Prompt, r.Results = item.Content.text(), nil
			}
		case "function_call", "custom_tool_call":
			if at, ok := stepOf(item.CallID); ok && r.answers != "" {
				if last, _ := stepOf(r.answers); last != at {
					r.Results = nil // results of an earlier step
				}
			}
		case "function_call_output", "custom_tool_call_output":
			r.Results, r.answers = append(r.Results, item.Output.text()), item.CallID
		}
	}
	return nil
}

func (responses) write(s *Server, w http.ResponseWriter, _ *Request, at stepIndex, step Step) {
	var items []object
	if step.Text != "" {
		items = append(items, object{"type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": step.Text}}})
	}
	for _, t := range step.Tools {
		item := object{"type": "function_call", "name": t.Name, "arguments": string(encode(t.Input))}
		if t.Text != "" {
			item = object{"type": "custom_tool_call", "name": t.Name, "input": t.Text}
		}
		item["call_id"] = at.toolID(s.ids.Add(1))
		items = append(items, item)
	}
	id := fmt.Sprintf("resp_%06d", s.ids.Add(1))
	send := events(w)
	send("response.created", object{"response": object{"id": id}})
	for i, item := range items {
		item["id"] = fmt.Sprintf("item_%06d", s.ids.Add(1))
		send("response.output_item.done", object{"output_index": i, "item": item})
	}
	send("response.completed", object{"response": object{"id": id, "usage": object{
		"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 7}, "output_tokens": 20,
		"output_tokens_details": object{"reasoning_tokens": 5}, "total_tokens": 120}}})
}
