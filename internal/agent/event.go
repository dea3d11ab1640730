package agent

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

type EventKind string

// The kinds of events.
const (
	EventStarted    EventKind = "started"     // the agent reported its session and model
	EventText       EventKind = "text"        // text of the model
	EventToolUse    EventKind = "tool_use"    // a tool call
	EventToolResult EventKind = "tool_result" // the answer of a tool
	EventUsage      EventKind = "usage"       // the number of tokens so far
	EventRetry      EventKind = "retry"       // the program retries a request by itself
	EventNotice     EventKind = "notice"      // a message of the program
	EventGarbage    EventKind = "garbage"     // a line that does not belong to the protocol
	EventStalled    EventKind = "stalled"     // no output for a long time
	EventMoved      EventKind = "moved"       // output after a stall
)

// An Event reports progress of a call. Its texts are safe to display.
type Event struct {
	Kind    EventKind     `json:"kind"`
	At      time.Time     `json:"at"`
	Text    string        `json:"text,omitempty"`
	Tool    string        `json:"tool,omitempty"`
	ToolID  string        `json:"tool_id,omitempty"`
	Failed  bool          `json:"failed,omitempty"` // the tool failed (for EventToolResult)
	Session string        `json:"session,omitempty"`
	Model   string        `json:"model,omitempty"`
	Usage   *Usage        `json:"usage,omitempty"`
	Attempt int           `json:"attempt,omitempty"` // the number of a retry
	Wait    time.Duration `json:"wait,omitempty"`    // the wait before a retry, or the duration of a stall
}

// maxEventText bounds the text of an event in bytes.
const maxEventText = 16 << 10

// clean makes text safe to display in a terminal or a page. It removes control characters
// except tabs and line ends, controls of the writing direction, and invalid UTF-8.
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

// quotable is the longest text of an agent that an error repeats, in bytes.
const quotable = 300

// quote returns the first line of a text that is not empty, cleaned for an error.
func quote(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(clean(line, quotable)); line != "" {
			return line
		}
	}
	return ""
}
