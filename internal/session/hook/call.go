package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project/protect"
	"lockkeeper/internal/session"
)

// A Call is one hook call in a form that does not depend on the host.
type Call struct {
	Event    Event
	Name     string // the host's name of the event
	Session  string
	Subagent session.Subagent
	Dir      string // the agent's working directory, absolute
	ID       string // id of the tool call
	Tool     string
	Prompt   string
	Restarts bool     // the session ends, and the next session of this process takes over its locks
	Running  []string // ids of the subagents that continue after the turn

	Writes     []Touch // files that the tool is about to write
	Reads      []Touch // files that the tool may show
	Command    string  // the shell command that the tool runs
	ShellDir   string  // the directory of the command; empty: Dir
	Background bool    // the command continues after the call
	Act        string  // the name and input of a tool with unknown effects

	Shown []string // the texts of the tool's answer; nil: the host does not report it
	Cut   bool     // the host shows only a part of the command's output
}

// A Touch is a file that a tool reads or writes, with the name that the tool gave.
type Touch struct {
	File  string
	Whole bool // the tool replaces or shows the whole file
	Goes  bool // the tool removes the file
}

// host translates the protocol of one agent.
type host interface {
	name() string
	protocol() protocol
	decode(input []byte) (Call, error)
	// encode returns the text for standard output if nothing is refused. It returns nothing
	// if the host needs no text.
	encode(c Call, a Answer) ([]byte, error)
	// deny returns the text for standard output that refuses a tool call.
	deny(c Call, reason string) ([]byte, error)
}

func hostOf(name string) (host, error) {
	switch name {
	case "claude-code":
		return claude{agent: name}, nil
	case "codex":
		return claude{agent: name, patches: true}, nil
	case "gemini":
		return gemini{}, nil
	case "opencode":
		return opencode{claude{agent: name}}, nil
	}
	return nil, &lockkeeper.InputError{Field: "agent", Value: name, Reason: "its hooks are not known", Next: "use claude-code, codex, gemini or opencode"}
}

// An Answer holds the messages for a call that is allowed.
type Answer struct {
	Model  []string // texts for the agent
	Person []string // texts for the person at the terminal
}

// shows reports whether a host shows the agent a text with the answer to an event, if it allows the
// call.
func (e Event) shows(h host) bool { return events[e].context[h.protocol()] }

// message returns the answer as the JSON object that hosts expect.
func (a Answer) message(h host, c Call) map[string]any {
	out := map[string]any{}
	if len(a.Person) > 0 {
		out["systemMessage"] = strings.Join(a.Person, "\n")
	}
	if len(a.Model) > 0 && c.Event.shows(h) {
		out["hookSpecificOutput"] = map[string]any{"hookEventName": c.Name, "additionalContext": strings.Join(a.Model, "\n")}
	}
	return out
}

func (a *Answer) tellBoth(text string) {
	a.Model, a.Person = append(a.Model, text), append(a.Person, text)
}

// idOf derives an id for a call from its input, for hosts that send no id. Equal input gives
// an equal id.
func idOf(input []byte) string {
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:8])
}

// absolute returns the absolute path of a file as seen from dir. It resolves ".." after a link
// as the kernel does, and does not resolve the last name.
func absolute(dir, file string) string {
	if !filepath.IsAbs(file) {
		file = dir + "/" + file
	}
	if strings.HasSuffix(file, "/..") {
		return protect.Real(file)
	}
	if strings.Contains(file, "/../") {
		i := strings.LastIndexByte(file, '/')
		file = protect.Real(file[:i]) + file[i:]
	}
	return filepath.Clean(file)
}
