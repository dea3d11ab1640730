package scriptedapi

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Request is a request that came in, and what of it decides about the answer.
type Request struct {
	At     time.Time
	Method string
	Path   string
	Header http.Header
	Body   []byte

	Model   string
	Stream  bool
	Tools   []string // that the model may use
	Prompt  string   // what the user said last
	Results []string // of the tools that were used since, all of the last turn
	Dir     string   // where Claude Code works; empty: it does not say

	answers string // the id of the use of a tool that the results are of
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a list of blocks; a plain string stands for one of text.
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

// text is all text of some blocks, without what Claude Code adds for the model.
func (c content) text() string {
	var all []string
	for _, b := range c {
		if b.Type == "text" && !strings.HasPrefix(strings.TrimSpace(b.Text), "<system-reminder>") {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}

// workingDirectory is how Claude Code 2.1.197 tells the model where it is.
var workingDirectory = regexp.MustCompile(`(?m)^ *-? *(?:Primary w|W)orking directory: (.+)$`)

// read takes in what the body says.
func (r *Request) read() error {
	var ask struct {
		Model    string    `json:"model"`
		Stream   bool      `json:"stream"`
		System   content   `json:"system"`
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
	if m := workingDirectory.FindStringSubmatch(ask.System.text()); m != nil {
		r.Dir = m[1]
	}
	for _, m := range ask.Messages {
		if m.Role == "user" {
			r.heard(m.Content)
		}
	}
	return nil
}

// heard takes in what the user said, or the tools in the user's name.
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
