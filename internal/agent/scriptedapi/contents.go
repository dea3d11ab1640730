package scriptedapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// contents implements the Gemini API, which Gemini CLI uses.
type contents struct{}

// read uses the last text of the user as the prompt. Before it, Gemini CLI describes the
// directory and its instructions in the user's name.
func (contents) read(r *Request) error {
	var ask struct {
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text   string `json:"text"`
				Answer *struct {
					ID       string            `json:"id"`
					Response map[string]string `json:"response"` // has the key output or error
				} `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(r.Body, &ask); err != nil {
		return err
	}
	r.Stream = strings.Contains(r.Path, ":stream")
	for _, c := range ask.Contents {
		if c.Role != "user" {
			continue
		}
		var results []string
		for _, part := range c.Parts {
			if part.Answer != nil {
				results, r.answers = append(results, part.Answer.Response["output"]+part.Answer.Response["error"]), part.Answer.ID
			} else if part.Text != "" && results == nil {
				r.Prompt = part.Text
			}
		}
		r.Results = results
	}
	return nil
}

func (contents) write(s *Server, w http.ResponseWriter, ask *Request, at stepIndex, step Step) {
	parts := []object{}
	if step.Text != "" {
		parts = append(parts, object{"text": step.Text})
	}
	for _, t := range step.Tools {
		parts = append(parts, object{"functionCall": object{"id": at.toolID(s.ids.Add(1)), "name": t.Name, "args": t.Input}})
	}
	answer := encode(object{
		"candidates":    []object{{"content": object{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 100, "candidatesTokenCount": 20, "cachedContentTokenCount": 7, "totalTokenCount": 120}})
	if ask.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", answer)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(answer)
}
