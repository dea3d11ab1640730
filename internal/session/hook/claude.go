package hook

import (
	"encoding/json"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"lockkeeper"
	"lockkeeper/internal/session"
)

// claude is the protocol of Claude Code. Codex uses it with other tools.
type claude struct {
	agent   string
	patches bool // the agent edits files with patches, as Codex does
}

func (h claude) name() string { return h.agent }

func (claude) protocol() protocol { return claudeProtocol }

// program returns the name of the host's program.
func (h claude) program() string {
	if h.patches {
		return h.agent
	}
	return "claude"
}

// claudeCall is the input that Claude Code 2.1 and Codex send.
type claudeCall struct {
	SessionID string          `json:"session_id"`
	AgentID   string          `json:"agent_id"` // empty: the main agent
	AgentType string          `json:"agent_type"`
	Cwd       string          `json:"cwd"`
	Event     string          `json:"hook_event_name"`
	Tool      string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"tool_input"`
	Response  json.RawMessage `json:"tool_response"`
	Prompt    string          `json:"prompt"`
	Reason    string          `json:"reason"`
	Tasks     []claudeTask    `json:"background_tasks"`
}

// claudeTask is work that continues after a turn.
type claudeTask struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
}

// running lists the subagents that continue after the turn.
func (in claudeCall) running() (ids []string) {
	for _, t := range in.Tasks {
		if t.Type == "subagent" && t.Status == "running" && t.ID != in.AgentID {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// claudeInput holds the tool arguments that this package uses.
type claudeInput struct {
	FilePath     string      `json:"file_path"`
	NotebookPath string      `json:"notebook_path"`
	Command      commandText `json:"command"`
	Cmd          commandText `json:"cmd"` // some versions use this name for command
	Background   bool        `json:"run_in_background"`
	Workdir      string      `json:"workdir"`

	part
}

// part holds the arguments that limit a read to a part of a file.
type part struct {
	Offset    any `json:"offset"`
	Limit     any `json:"limit"`
	Pages     any `json:"pages"`
	StartLine any `json:"start_line"`
	EndLine   any `json:"end_line"`
}

// whole reports whether a read asked for the whole file and did not fail.
func (in claudeCall) whole(asked part) bool {
	return asked == part{} && in.Event != "PostToolUseFailure"
}

// shown returns the texts that a tool reports it showed, or nil if it does not report them or
// showed no text.
func (in claudeCall) shown() []string {
	var read struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(in.Response, &read) == nil && slices.Contains([]string{"image", "pdf", "parts"}, read.Type) {
		return nil
	}
	return textsOf(in.Response)
}

// claudeRan holds the fields of a Bash answer that say whether the output is incomplete.
type claudeRan struct {
	Interrupted bool   `json:"interrupted"`
	Persisted   string `json:"persistedOutputPath"` // the file with the whole output; the agent sees only its beginning
	Task        string `json:"backgroundTaskId"`    // the background task that continues the command
}

// ran records the result of a command. If a command fails, Claude Code shows only 10,000 characters.
func (in claudeCall) ran(c *Call) {
	var ran claudeRan
	known := json.Unmarshal(in.Response, &ran) == nil
	c.Background = c.Background || known && ran.Task != ""
	c.Cut = in.Event == "PostToolUseFailure" || known && (ran.Interrupted || ran.Persisted != "")
}

// commandText is a command, sent as one text or, by some versions, as a list.
type commandText string

// UnmarshalJSON accepts a text or a list.
func (w *commandText) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*w = commandText(text)
		return nil
	}
	var list []string
	err := json.Unmarshal(b, &list)
	if len(list) == 3 && strings.HasSuffix(list[0], "sh") && strings.HasPrefix(list[1], "-") && strings.Contains(list[1], "c") {
		list = list[2:]
	}
	for i := range list {
		if quoted, err := syntax.Quote(list[i], syntax.LangBash); err == nil && len(list) > 1 {
			list[i] = quoted
		}
	}
	*w = commandText(strings.Join(list, " "))
	return err
}

func (h claude) decode(input []byte) (c Call, err error) {
	var in claudeCall
	if err := decodeStrict(input, &in); err != nil {
		return c, notUnderstood(err)
	}
	c = Call{Event: eventOf(claudeProtocol, in.Event), Name: in.Event, Session: in.SessionID, Subagent: session.Subagent{ID: in.AgentID, Kind: in.AgentType}, Dir: in.Cwd, ID: in.ToolUseID, Tool: in.Tool, Prompt: in.Prompt,
		Restarts: in.Reason == "clear", Shown: in.shown(), Running: in.running()}
	if in.Event == "" || in.SessionID == "" {
		return c, notUnderstood(nil)
	}
	if c.Event != Before && c.Event != After {
		return c, nil
	}
	if c.ID == "" {
		c.ID = idOf(in.Input)
	}
	return c, h.tool(&c, in)
}

// tool returns the files that a tool call touches. Unknown tools may have any arguments.
func (h claude) tool(c *Call, in claudeCall) error {
	var t claudeInput
	switch c.Tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit", "Read", "apply_patch", "Bash", "Monitor", "shell", "local_shell", "exec_command", "unified_exec":
		if err := decodeStrict(in.Input, &t); err != nil {
			return notUnderstood(err)
		}
	}
	switch c.Tool {
	case "Write":
		c.Writes = []Touch{{File: t.FilePath, Whole: true}}
	case "Edit", "MultiEdit":
		c.Writes = []Touch{{File: t.FilePath}}
	case "NotebookEdit":
		c.Writes = []Touch{{File: t.NotebookPath}}
	case "Read":
		c.Reads = []Touch{{File: t.FilePath, Whole: in.whole(t.part)}}
	case "apply_patch":
		if !h.patches {
			c.foreign(h.program(), in.Input)
			return nil
		}
		list, err := patched(string(t.Command))
		c.Writes = list
		return err
	case "Bash", "Monitor", "shell", "local_shell", "exec_command", "unified_exec":
		c.Command, c.Background, c.ShellDir = string(t.Command+t.Cmd), t.Background || c.Tool == "Monitor", t.Workdir
		in.ran(c)
		if t.Command != "" && t.Cmd != "" {
			return unknownForm(c, "it has two commands")
		}
		return c.hasCommand()
	default:
		c.foreign(h.program(), in.Input)
		return nil
	}
	for _, w := range append(c.Writes, c.Reads...) {
		if w.File == "" {
			return unknownForm(c, "it names no file")
		}
	}
	return nil
}

// hasCommand refuses a shell call without a command.
func (c *Call) hasCommand() error {
	if strings.TrimSpace(c.Command) == "" {
		return unknownForm(c, "it has no command")
	}
	return nil
}

func unknownForm(c *Call, reason string) error {
	return &lockkeeper.InputError{Field: "tool input", Value: c.Tool, Reason: reason, Next: "update lockkeeper: this version does not know that form of the tool"}
}

// patched lists the files that a Codex patch changes. Codex also accepts indented headers.
func patched(patch string) (list []Touch, err error) {
	for line := range strings.Lines(patch) {
		line = strings.TrimSpace(line)
		for prefix, touch := range map[string]Touch{"*** Add File:": {Whole: true}, "*** Update File:": {}, "*** Delete File:": {Goes: true}, "*** Move to:": {Whole: true}} {
			if file, ok := strings.CutPrefix(line, prefix); ok {
				touch.File = strings.TrimSpace(file)
				list = append(list, touch)
			}
		}
	}
	if len(list) == 0 {
		err = &lockkeeper.InputError{Field: "patch", Reason: "it names no file", Next: "update lockkeeper: this version does not know that form of a patch"}
	}
	return list, err
}

// encode returns nothing if there is no message. It never grants a permission, because that is
// the person's decision.
func (h claude) encode(c Call, a Answer) ([]byte, error) {
	out := a.message(h, c)
	if len(out) == 0 {
		return nil, nil
	}
	return json.Marshal(out)
}

// deny has no other fields: Codex lets a call through if the answer has an unknown one.
func (claude) deny(c Call, reason string) ([]byte, error) {
	return json.Marshal(map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": c.Name, "permissionDecision": "deny", "permissionDecisionReason": reason}})
}

func notUnderstood(err error) error {
	reason := "it names neither its session nor its event"
	if err != nil {
		reason = err.Error()
	}
	return &lockkeeper.InputError{Field: "hook input", Reason: reason, Next: "update lockkeeper, or the agent: they do not understand each other"}
}
