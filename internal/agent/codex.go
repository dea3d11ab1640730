package agent

import (
	"encoding/json"
	"time"
)

// Codex calls `codex exec --json`.
//
// The protocol was read from openai/codex at 343074d (codex-rs/exec/src/cli.rs, exec_events.rs,
// codex-rs/utils/cli/src/shared_options.rs) and developers.openai.com/codex/noninteractive,
// and tried with 0.166.0. A prompt of "-" is standard input. --sandbox must come before
// resume, other flags may follow. A schema is given as a file, and the answer is then the
// text of the last message. Codex reports tokens, cached ones as part of the input, and no
// price. After a resume it reports the tokens of the whole thread.
type Codex struct {
	Argv []string // the program and its first arguments; empty: codex, in PATH
}

func (Codex) Name() string { return "codex" }

func (c Codex) command(r *Request, f Files) (Command, string, error) {
	if err := r.cannot(c.Name(), "cost limit"); err != nil {
		return Command{}, "", err
	}
	argv := append(commandLine(c.Argv, "codex"), "exec", "--json", "--skip-git-repo-check")
	if r.Permission == PermitAll {
		argv = append(argv, "--dangerously-bypass-approvals-and-sandbox")
	} else {
		argv = append(argv, "--sandbox=read-only")
	}
	argv = given(argv, "--model", r.Model)
	if r.Schema != nil {
		argv = append(argv, "--output-schema="+f.Schema())
	}
	argv = append(argv, r.Extra...)
	if r.Resume != "" {
		argv = append(argv, "resume", r.Resume)
	}
	return Command{Argv: append(argv, "-"), Dir: r.Dir, Env: environment(r.Env, nil)}, r.Prompt, nil
}

func (Codex) stream() stream { return &codexStream{} }

type codexStream struct{ turnState }

type codexItem struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Text     string          `json:"text"`    // of an agent_message
	Message  string          `json:"message"` // of an error
	Command  string          `json:"command"` // of a command_execution
	Output   string          `json:"aggregated_output"`
	Status   string          `json:"status"`
	Changes  json.RawMessage `json:"changes"` // of an item of the type file_change
	Server   string          `json:"server"`  // of an mcp_tool_call
	Tool     string          `json:"tool"`
	Query    string          `json:"query"` // of a web_search
	ExitCode *int            `json:"exit_code"`
}

func (s *codexStream) line(b []byte, tell func(Event)) bool {
	var l struct {
		Type    string    `json:"type"`
		Thread  string    `json:"thread_id"`
		Item    codexItem `json:"item"`
		Message string    `json:"message"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
		Usage struct {
			Input      int64 `json:"input_tokens"`
			Cached     int64 `json:"cached_input_tokens"`
			CacheWrite int64 `json:"cache_write_input_tokens"`
			Output     int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(b, &l) != nil || l.Type == "" || s.res.Session == "" && l.Type != "thread.started" && l.Type != "error" {
		return false
	}
	s.final = false
	switch l.Type {
	case "thread.started":
		if s.res.Session != "" || l.Thread == "" {
			return false
		}
		s.res.Session = l.Thread
		tell(Event{Kind: EventStarted, Session: l.Thread})
	case "turn.completed":
		s.said, s.final, s.failed = true, true, nil
		s.res.Turns++
		u := l.Usage
		s.res.Usage = Usage{Input: u.Input - u.Cached - u.CacheWrite, CacheRead: u.Cached, CacheWrite: u.CacheWrite, Output: u.Output}
		used := s.res.Usage
		tell(Event{Kind: EventUsage, Usage: &used})
	case "turn.failed":
		s.said, s.final, s.failed = true, true, &Error{Reason: l.Error.Message, ResetAt: codexReset(l.Error.Message, time.Now())}
	case "error": // codex also prints such an error before it reconnects by itself
		s.failed = &Error{Reason: l.Message}
		tell(Event{Kind: EventNotice, Text: l.Message})
	case "item.started":
		if name, input := l.Item.tool(); name != "" {
			tell(Event{Kind: EventToolUse, Tool: name, ToolID: l.Item.ID, Text: input})
		}
	case "item.completed":
		s.completed(&l.Item, tell)
	}
	return true
}

// tool returns the tool that an item uses, and its input.
func (i *codexItem) tool() (name, input string) {
	switch i.Type {
	case "command_execution":
		return i.Type, i.Command
	case "file_change":
		return i.Type, string(i.Changes)
	case "mcp_tool_call":
		return i.Server + "/" + i.Tool, ""
	case "web_search":
		return i.Type, i.Query
	}
	return "", ""
}

func (s *codexStream) completed(i *codexItem, tell func(Event)) {
	switch i.Type {
	case "agent_message":
		s.res.Text = i.Text
		tell(Event{Kind: EventText, Text: i.Text})
	case "error":
		tell(Event{Kind: EventNotice, Text: i.Message})
	}
	name, input := i.tool()
	if name == "" {
		return
	}
	if i.Type == "file_change" || i.Type == "web_search" { // codex reports these items only when they are done
		tell(Event{Kind: EventToolUse, Tool: name, ToolID: i.ID, Text: input})
	}
	if i.Status == "declined" {
		s.res.Denials = append(s.res.Denials, Denial{Tool: name, ID: i.ID, Input: input})
	}
	failed := i.Status == "failed" || i.Status == "declined" || i.ExitCode != nil && *i.ExitCode != 0
	tell(Event{Kind: EventToolResult, Tool: name, ToolID: i.ID, Text: i.Output, Failed: failed})
}

// ended returns the error in the stream of a codex that could not start, or else classifies the
// log.
func (s *codexStream) ended(exit Exit, said string) *Error {
	if s.failed != nil && !exit.ok() && exit.byItself() {
		return s.failed
	}
	return byWords(exit, said)
}

var codexAgain = pattern(`(?i)try again at (?:([A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th), (\d{4}) )?(\d{1,2}:\d\d [AP]M)`)

// codexReset returns when a limit ends, or zero. Codex prints a local time, with a date if it
// is not today.
func codexReset(text string, now time.Time) time.Time {
	m := codexAgain().FindStringSubmatch(text)
	if m == nil {
		return time.Time{}
	}
	if m[1] == "" {
		m[1], m[2] = now.Format("Jan 2"), now.Format("2006")
	}
	at, err := time.ParseInLocation("Jan 2 2006 3:04 PM", m[1]+" "+m[2]+" "+m[3], now.Location())
	if err != nil {
		return time.Time{} // the date does not exist
	}
	return at
}
