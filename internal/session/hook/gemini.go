package hook

import (
	"encoding/json"
	"regexp"
	"slices"
	"sync"
)

// gemini is the protocol of Gemini CLI.
type gemini struct{}

func (gemini) name() string { return "gemini" }

func (gemini) protocol() protocol { return geminiProtocol }

func (gemini) decode(input []byte) (c Call, err error) {
	var in claudeCall
	if err := decodeStrict(input, &in); err != nil {
		return c, notUnderstood(err)
	}
	c = Call{Event: eventOf(geminiProtocol, in.Event), Name: in.Event, Session: in.SessionID, Dir: in.Cwd, Tool: in.Tool, Prompt: in.Prompt, Restarts: in.Reason == "clear", Shown: in.shown()}
	if in.Event == "" || in.SessionID == "" {
		return c, notUnderstood(nil)
	}
	if c.Event != Before && c.Event != After {
		return c, nil
	}
	c.ID = idOf(append([]byte(in.Tool), in.Input...))
	var t struct {
		FilePath     string `json:"file_path"`
		AbsolutePath string `json:"absolute_path"`
		Command      string `json:"command"`
		Background   bool   `json:"is_background"`
		DirPath      string `json:"dir_path"`
		Directory    string `json:"directory"`

		part
	}
	switch c.Tool {
	case "write_file", "replace", "edit", "read_file", "run_shell_command":
		if err := decodeStrict(in.Input, &t); err != nil {
			return c, notUnderstood(err)
		}
	}
	file := t.FilePath
	if file == "" {
		file = t.AbsolutePath
	}
	switch c.Tool {
	case "write_file":
		c.Writes = []Touch{{File: file, Whole: true}}
	case "replace", "edit":
		c.Writes = []Touch{{File: file}}
	case "read_file":
		c.Reads = []Touch{{File: file, Whole: in.whole(t.part)}}
	case "run_shell_command":
		c.Command, c.ShellDir = t.Command, t.DirPath
		c.Background = t.Background || slices.ContainsFunc(c.Shown, leavesProcess().MatchString)
		if c.ShellDir == "" {
			c.ShellDir = t.Directory
		}
		return c, c.hasCommand()
	default:
		c.foreign("gemini", in.Input)
		return c, nil
	}
	if file == "" {
		return c, unknownForm(&c, "it names no file")
	}
	return c, nil
}

// leavesProcess matches what Gemini CLI reports of a command that left processes, or that a person
// moved to the background.
var leavesProcess = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(Background PIDs: \d|Command moved to background \(PID: \d)`)
})

// encode always answers with JSON, because this host accepts nothing else.
func (h gemini) encode(c Call, a Answer) ([]byte, error) {
	return json.Marshal(a.message(h, c))
}

func (gemini) deny(_ Call, reason string) ([]byte, error) {
	return json.Marshal(map[string]string{"decision": "deny", "reason": reason})
}
