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

// Call is what a host says, in the words of no host.
type Call struct {
	Event    Event
	Name     string // of the event, as the host calls it
	Session  string
	Subagent session.Subagent
	Dir      string // where the agent works, absolute
	ID       string // of the call of a tool
	Tool     string
	Prompt   string
	Restarts bool // the session ends, and the next one of this process takes over what it holds

	Writes     []Touch // files that the tool is about to write
	Reads      []Touch // files that it may show
	Command    string  // that it runs in a shell
	ShellDir   string  // where; empty: Dir
	Background bool    // it continues after the call

	Shown []string // what its tool answered, in texts; nil: the host does not say
	Cut   bool     // not all that a command printed is shown
}

// Touch is a file as a tool spells it.
type Touch struct {
	File  string
	Whole bool // all that is in it is replaced, or shown
	Goes  bool // it is removed
}

// host is the protocol of one agent.
type host interface {
	name() string
	decode(input []byte) (Call, error)
	// encode is what is written to standard output for an answer that refuses nothing;
	// nothing where the host needs none.
	encode(c Call, a Answer) ([]byte, error)
}

func hostOf(name string) (host, error) {
	switch name {
	case "claude-code":
		return claude{agent: name}, nil
	case "codex":
		return claude{agent: name, patches: true}, nil
	case "gemini":
		return gemini{}, nil
	}
	return nil, &lockkeeper.InputError{Field: "agent", Value: name, Reason: "its hooks are not known", Next: "use claude-code, codex or gemini"}
}

// Answer is what is said to a call that is let through.
type Answer struct {
	Model  []string // for the agent
	Person []string // for the person at the terminal
}

// message returns an answer as hosts read it.
func (a Answer) message(p protocol, c Call) map[string]any {
	out := map[string]any{}
	if len(a.Person) > 0 {
		out["systemMessage"] = strings.Join(a.Person, "\n")
	}
	if len(a.Model) > 0 && events[c.Event].context[p] {
		out["hookSpecificOutput"] = map[string]any{"hookEventName": c.Name, "additionalContext": strings.Join(a.Model, "\n")}
	}
	return out
}

func (a *Answer) tellBoth(text string) {
	a.Model, a.Person = append(a.Model, text), append(a.Person, text)
}

// idOf names a call of a host that gives it no id: the same input has the same.
func idOf(input []byte) string {
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:8])
}

// absolute is a file as seen from a directory. What follows a link and ".." is found where
// the kernel finds it; the last name is left as it is.
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
