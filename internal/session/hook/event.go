package hook

import (
	"context"
	"slices"
)

// Event is what happened in a host.
type Event uint8

// The events.
const (
	Other       Event = iota // nothing that matters here
	Start                    // a session begins
	Prompt                   // a turn begins
	Before                   // a tool is about to be called
	After                    // a tool was called
	Stop                     // a turn ended
	SubagentEnd              // a subagent ended
	End                      // the session ended
)

// protocol is the way in which hosts name events.
type protocol uint8

const (
	claudeProtocol protocol = iota // Claude Code and Codex
	geminiProtocol
	protocols
)

// events has one entry for each event. To add one, add it here, and to the host's
// registrations in the package enrol.
var events = map[Event]struct {
	names   [protocols][]string
	context [protocols]bool // the host takes text for the model with the answer
	act     func(*visit, context.Context) error
}{
	Start:       {[protocols][]string{{"SessionStart"}, {"SessionStart"}}, [protocols]bool{true, true}, (*visit).begin},
	Prompt:      {[protocols][]string{{"UserPromptSubmit"}, {"BeforeAgent"}}, [protocols]bool{true, true}, (*visit).begin},
	Before:      {[protocols][]string{{"PreToolUse"}, {"BeforeTool"}}, [protocols]bool{true, false}, (*visit).before},
	After:       {[protocols][]string{{"PostToolUse", "PostToolUseFailure"}, {"AfterTool"}}, [protocols]bool{true, true}, (*visit).after},
	Stop:        {[protocols][]string{{"Stop", "StopFailure"}, {"AfterAgent"}}, [protocols]bool{}, (*visit).stop},
	SubagentEnd: {[protocols][]string{{"SubagentStop"}}, [protocols]bool{}, (*visit).endSubagent},
	End:         {[protocols][]string{{"SessionEnd"}, {"SessionEnd"}}, [protocols]bool{}, (*visit).leave},
}

// eventOf returns the event that a host calls by a name.
func eventOf(p protocol, name string) Event {
	for event, e := range events {
		if slices.Contains(e.names[p], name) {
			return event
		}
	}
	return Other
}
