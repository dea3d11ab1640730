package research

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// apiVersion is the version of the Messages API that the types of this file describe.
const apiVersion = "2023-06-01"

// maxResponse bounds a response, far above the longest answer of a model.
const maxResponse = 16 << 20

// A question is the body of a request.
type question struct {
	Model     string `json:"model"`
	MaxTokens int64  `json:"max_tokens"`
	Messages  []turn `json:"messages"`
}

type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// A message has the used fields of a successful response.
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

// parseMessage reads the body of a successful response. It reports false for a body that
// is not a message.
func parseMessage(body []byte) (message, bool) {
	var m message
	err := json.Unmarshal(body, &m)
	return m, err == nil && m.Content != nil
}

// A failureBody is the body of a response that reports a failure.
type failureBody struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// A response is the response to one request.
type response struct {
	status int // 0: no response
	header http.Header
	body   []byte // the part that was read
}

// post sends a question. If it returns an error, it also returns the part of the response that
// arrived.
func (c *Client) post(ctx context.Context, prompt string) (response, error) {
	body, err := json.Marshal(question{
		Model:     c.options.Model,
		MaxTokens: c.options.MaxTokens,
		Messages:  []turn{{Role: "user", Content: []block{{Type: "text", Text: prompt}}}},
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
