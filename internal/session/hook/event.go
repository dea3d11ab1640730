package hook

import (
	"context"
	"slices"
)

// An Event is a kind of hook call.
type Event uint8

const (
	Other       Event = iota // an event that this package ignores
	Start                    // a session begins
	Prompt                   // a turn begins
	Before                   // a tool is about to be called
	After                    // a tool was called
	Stop                     // a turn ended
	SubagentEnd              // a subagent ended
	End                      // the session ended
)

// protocol selects the event names of a host.
type protocol uint8

const (
	claudeProtocol protocol = iota // Claude Code and Codex
	geminiProtocol
	protocols
)

// events has one entry for each event. To add an event, add it here and to the host's
// registrations in package enrol.
var events = map[Event]struct {
	names   [protocols][]string
	context [protocols]bool // the host accepts text for the model with the answer
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

func eventOf(p protocol, name string) Event {
	for event, e := range events {
		if slices.Contains(e.names[p], name) {
			return event
		}
	}
	return Other
}
