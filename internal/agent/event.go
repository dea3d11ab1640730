package agent

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	EventStarted    EventKind = "started"     // the agent names its session and model
	EventText       EventKind = "text"        // the model says something
	EventToolUse    EventKind = "tool_use"    // it uses a tool
	EventToolResult EventKind = "tool_result" // the tool answers
	EventUsage      EventKind = "usage"       // tokens so far
	EventRetry      EventKind = "retry"       // the program tries a request again by itself
	EventNotice     EventKind = "notice"      // the program says something about itself
	EventGarbage    EventKind = "garbage"     // a line that is not of the protocol
	EventStalled    EventKind = "stalled"     // nothing was said for a long time
	EventMoved      EventKind = "moved"       // it says something again
)

// Event is one thing that happens in a call, fit to be shown.
type Event struct {
	Kind    EventKind     `json:"kind"`
	At      time.Time     `json:"at"`
	Text    string        `json:"text,omitempty"`
	Tool    string        `json:"tool,omitempty"`
	ToolID  string        `json:"tool_id,omitempty"`
	Failed  bool          `json:"failed,omitempty"` // of a tool's answer
	Session string        `json:"session,omitempty"`
	Model   string        `json:"model,omitempty"`
	Usage   *Usage        `json:"usage,omitempty"`
	Attempt int           `json:"attempt,omitempty"` // of a retry
	Wait    time.Duration `json:"wait,omitempty"`    // before a retry; of a stall, how long it has lasted
}

// maxEventText bounds what an event carries: an answer may be megabytes.
const maxEventText = 16 << 10

// clean makes text fit to be shown in a terminal or a page: no control characters but
// tabs and line ends, nothing that turns the direction of writing, no broken UTF-8.
func clean(text string, limit int) string {
	cut := len(text) > limit
	if cut {
		text = text[:limit]
		for i := 0; i < utf8.UTFMax-1 && len(text) > 0; i++ {
			if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size > 1 {
				break
			}
			text = text[:len(text)-1]
		}
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
	if cut {
		text += "…"
	}
	return text
}

// quotable is the most of somebody's words that an error repeats.
const quotable = 300

// quote is the first line of a text that says something, fit for an error.
func quote(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(clean(line, quotable)); line != "" {
			return line
		}
	}
	return ""
}
