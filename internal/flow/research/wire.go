package research

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"lockkeeper/internal/agent"
)

// apiVersion is the version of the Messages API that the types of this file describe.
const apiVersion = "2023-06-01"

// maxResponse bounds a response, far above the longest answer of a model.
const maxResponse = 16 << 20

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type message struct {
	Content     []block `json:"content"`
	Model       string  `json:"model"`
	StopReason  string  `json:"stop_reason"`
	StopDetails struct {
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
	Usage struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
	} `json:"usage"`
}

type response struct {
	status int // 0: no response
	header http.Header
	body   []byte // the part that was read
}

// post sends a question. If it returns an error, it also returns the part of the response that
// arrived.
func (c *Client) post(ctx context.Context, prompt string) (response, error) {
	body, err := json.Marshal(map[string]any{
		"model": c.options.Model, "max_tokens": c.options.MaxTokens,
		"messages": []any{map[string]any{"role": "user", "content": []block{{Type: "text", Text: prompt}}}},
	})
	if err != nil {
		return response{}, fmt.Errorf("encode the question: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return response{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Anthropic-Version", apiVersion)
	request.Header.Set("X-Api-Key", c.options.APIKey)
	answer, err := c.http.Do(request)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	got := response{status: answer.StatusCode, header: answer.Header}
	got.body, err = io.ReadAll(http.MaxBytesReader(nil, answer.Body, maxResponse))
	return got, err
}

// paste is the hint if the API gave no usable answer.
const paste = "ask again, or research it elsewhere and paste the text"

// answer reads a message. An incomplete answer is an error.
func (c *Client) answer(res agent.Result, m message) (agent.Result, error) {
	var text strings.Builder
	for _, block := range m.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	res.Text = strings.TrimSpace(text.String())
	if m.Model != "" {
		res.Model = m.Model
	}
	res.Usage = agent.Usage{Input: m.Usage.Input, Output: m.Usage.Output,
		CacheRead: m.Usage.CacheRead, CacheWrite: m.Usage.CacheWrite}
	unfinished := func(reason, next string) (agent.Result, error) {
		return res, &agent.Error{Kind: agent.Unfinished, Origin: c.origin(), Reason: reason, Next: next}
	}
	switch m.StopReason {
	case "refusal":
		reason := "the model declined to answer"
		if why := c.quote(m.StopDetails.Explanation); why != "" {
			reason += ": " + why
		}
		return unfinished(reason, "reword the topic, or research it elsewhere and paste the text")
	case "max_tokens":
		return unfinished(fmt.Sprintf("the answer was cut off after %d tokens, its limit", m.Usage.Output), "ask a shorter question, or split it")
	case "model_context_window_exceeded":
		return unfinished("the answer was cut off at the end of the model's context window", "ask a shorter question, or split it")
	case "end_turn", "stop_sequence":
	default:
		return unfinished(fmt.Sprintf("the answer ended for the reason %q", c.quote(m.StopReason)), paste)
	}
	if res.Text == "" {
		return unfinished("the answer is empty", paste)
	}
	return res, nil
}
