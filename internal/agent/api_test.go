//go:build agents

package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// modelAPI serves the APIs of the models on loopback and plays a script: the answer is the
// step after as many answers of tools as the conversation holds. So a real agent program
// goes through tool calls without a model. It returns its address.
func modelAPI(t *testing.T, script []apiStep) string {
	t.Helper()
	var ids atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		step := func(answerOfTool string) apiStep {
			return script[min(strings.Count(string(body), answerOfTool), len(script)-1)]
		}
		path, id := r.URL.Path, ids.Add(1)
		switch {
		case r.Method != http.MethodPost || strings.Contains(path, "ount"): // …/count_tokens, …:countTokens
			fmt.Fprint(w, `{"data":[],"models":[],"input_tokens":10,"totalTokens":10}`)
		case strings.HasPrefix(path, "/v1/messages"):
			var ask struct {
				Model  string            `json:"model"`
				Stream bool              `json:"stream"`
				Tools  []json.RawMessage `json:"tools"`
			}
			if err := json.Unmarshal(body, &ask); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			next := step(`"type":"tool_result"`)
			if len(ask.Tools) == 0 { // a side question
				next = apiStep{text: "ok"}
			}
			if !next.fails(w) {
				next.message(w, ask.Model, id, ask.Stream)
			}
		case strings.HasSuffix(path, "/responses"):
			if next := step(`"type":"function_call_output"`); !next.fails(w) {
				next.response(w, id)
			}
		default:
			if next := step(`"functionResponse"`); !next.fails(w) {
				next.content(w, strings.Contains(path, "stream"))
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// fails answers with the error of a step, if it is one.
func (s apiStep) fails(w http.ResponseWriter) bool {
	for name, value := range s.header {
		w.Header().Set(name, value)
	}
	if s.status == 0 {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.status)
	json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]any{"type": s.kind, "message": s.text, "code": s.code, "resets_at": s.resets}})
	return true
}

// events writes server-sent events.
func events(w http.ResponseWriter) func(kind string, fields map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(kind string, fields map[string]any) {
		if kind != "" {
			fields["type"] = kind
			fmt.Fprintf(w, "event: %s\n", kind)
		}
		b, _ := json.Marshal(fields)
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
}

// response is an answer of the Responses API.
func (s apiStep) response(w http.ResponseWriter, id int64) {
	item := map[string]any{"type": "message", "id": fmt.Sprintf("msg_%d", id), "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": s.text}}}
	if s.tool != "" {
		input, _ := json.Marshal(s.input)
		item = map[string]any{"type": "function_call", "id": fmt.Sprintf("fc_%d", id), "call_id": fmt.Sprintf("call_%d", id), "name": s.tool, "arguments": string(input)}
	}
	send := events(w)
	send("response.created", map[string]any{"response": map[string]any{"id": fmt.Sprintf("resp_%d", id)}})
	send("response.output_item.done", map[string]any{"output_index": 0, "item": item})
	send("response.completed", map[string]any{"response": map[string]any{"id": fmt.Sprintf("resp_%d", id), "usage": map[string]any{
		"input_tokens": 100, "input_tokens_details": map[string]any{"cached_tokens": 7}, "output_tokens": 20,
		"output_tokens_details": map[string]any{"reasoning_tokens": 5}, "total_tokens": 120}}})
}

// content is an answer of the Gemini API.
func (s apiStep) content(w http.ResponseWriter, stream bool) {
	part := map[string]any{"text": s.text}
	if s.tool != "" {
		part = map[string]any{"functionCall": map[string]any{"name": s.tool, "args": s.input}}
	}
	answer := map[string]any{
		"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": map[string]any{"promptTokenCount": 100, "candidatesTokenCount": 20, "cachedContentTokenCount": 7, "totalTokenCount": 120}}
	if stream {
		events(w)("", answer)
		return
	}
	json.NewEncoder(w).Encode(answer)
}

// message is an answer of the Messages API.
func (s apiStep) message(w http.ResponseWriter, model string, id int64, stream bool) {
	block, empty, stop := map[string]any{"type": "text", "text": s.text}, map[string]any{"type": "text", "text": ""}, "end_turn"
	delta := map[string]any{"type": "text_delta", "text": s.text}
	if s.tool != "" {
		input, _ := json.Marshal(s.input)
		toolID := fmt.Sprintf("toolu_%06d", id)
		block = map[string]any{"type": "tool_use", "id": toolID, "name": s.tool, "input": s.input}
		empty = map[string]any{"type": "tool_use", "id": toolID, "name": s.tool, "input": map[string]any{}}
		delta, stop = map[string]any{"type": "input_json_delta", "partial_json": string(input)}, "tool_use"
	}
	usage := map[string]any{"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}
	message := map[string]any{"id": fmt.Sprintf("msg_%06d", id), "type": "message", "role": "assistant", "model": model,
		"content": []any{block}, "stop_reason": stop, "stop_sequence": nil, "usage": usage}
	if !stream {
		json.NewEncoder(w).Encode(message)
		return
	}
	send := events(w)
	message["content"], message["stop_reason"] = []any{}, nil
	send("message_start", map[string]any{"message": message})
	send("content_block_start", map[string]any{"index": 0, "content_block": empty})
	send("content_block_delta", map[string]any{"index": 0, "delta": delta})
	send("content_block_stop", map[string]any{"index": 0})
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	send("message_stop", map[string]any{})
}
