package hook

import (
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/session"
)

// opencode is the protocol of opencode. That program has no hooks, but loads plugins. The plugin that
// package enrol writes calls this hook in the form of Claude Code, with the names and inputs of
// opencode's own tools.
type opencode struct{ claude }

func (h opencode) decode(input []byte) (c Call, err error) {
	var in claudeCall
	if err := decodeStrict(input, &in); err != nil {
		return c, notUnderstood(err)
	}
	c = Call{Event: eventOf(claudeProtocol, in.Event), Name: in.Event, Session: in.SessionID, Subagent: session.Subagent{ID: in.AgentID, Kind: in.AgentType}, Dir: in.Cwd, ID: in.ToolUseID, Tool: in.Tool,
		Prompt: in.Prompt, Restarts: in.Reason == "clear"}
	if in.Event == "" || in.SessionID == "" || in.ToolUseID == "" && (c.Event == Before || c.Event == After) {
		return c, notUnderstood(nil)
	}
	if c.Event != Before && c.Event != After {
		return c, nil
	}
	return c, h.tool(&c, in)
}

// opencodeInput holds the tool arguments that this package uses.
type opencodeInput struct {
	FilePath string `json:"filePath"`
	Patch    string `json:"patchText"`
	Command  string `json:"command"`
	Workdir  string `json:"workdir"`

	part
}

// opencodeAnswer is the answer of a tool.
type opencodeAnswer struct {
	Output    string `json:"output"`
	Truncated bool   `json:"truncated"` // the agent sees only a part of the output
}

// lineNumber matches what opencode puts before each line of a file that it shows.
var lineNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\d+: `) })

func (h opencode) tool(c *Call, in claudeCall) error {
	var t opencodeInput
	switch c.Tool {
	case "write", "edit", "multiedit", "read", "apply_patch", "patch", "bash":
		if err := decodeStrict(in.Input, &t); err != nil {
			return notUnderstood(err)
		}
	}
	var answer opencodeAnswer
	if len(in.Response) > 0 {
		if err := json.Unmarshal(in.Response, &answer); err != nil {
			return notUnderstood(err)
		}
		c.Shown, c.Cut = []string{answer.Output}, answer.Truncated
	}
	switch c.Tool {
	case "write":
		c.Writes = []Touch{{File: t.FilePath, Whole: true}}
	case "edit", "multiedit":
		c.Writes = []Touch{{File: t.FilePath}}
	case "read":
		c.Reads = []Touch{{File: t.FilePath, Whole: in.whole(t.part)}}
		c.Shown = []string{lineNumber().ReplaceAllString(answer.Output, "")}
	case "apply_patch", "patch":
		list, err := patched(t.Patch)
		c.Writes = list
		return err
	case "bash":
		c.Command, c.ShellDir = t.Command, t.Workdir
		c.Cut = c.Cut || in.Event == "PostToolUseFailure"
		return c.hasCommand()
	default:
		if slices.Contains(program.Idle("opencode"), c.Tool) {
			return nil
		}
		// The name of an MCP tool begins with the name of its server. The name of a plugin's tool
		// can begin with anything.
		c.Tool = "mcp_" + c.Tool
		c.foreign("opencode", in.Input)
		return nil
	}
	if t.FilePath == "" {
		return unknownForm(c, "it names no file")
	}
	return nil
}
