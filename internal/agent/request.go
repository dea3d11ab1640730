package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"lockkeeper"
)

// Permission is what an agent may do without asking. Nobody answers it: what it may not
// do unasked is denied.
type Permission string

// The permissions, each with all of the one before.
const (
	PermitNamed Permission = ""      // what AllowedTools name, and what the program permits anyway
	PermitEdits Permission = "edits" // changing files in its directory
	PermitAll   Permission = "all"   // everything: only where something else holds the agent
)

// Request is one call of an agent.
type Request struct {
	Prompt string
	Dir    string   // where it works
	Env    []string // its environment; nil: this process's
	Model  string   // empty: the program's own choice

	Permission   Permission
	AllowedTools []string // in the program's own spelling

	Schema []byte // JSON schema of the answer; nil: any text will do
	Resume string // the session to go on with; empty: a new one

	MaxTurns int     // 0: no limit
	MaxUSD   float64 // 0: no limit

	Extra []string // more arguments, as the program spells them
}

// maxArgument is the longest single argument that is passed on; Linux refuses one of
// 128 KiB.
const maxArgument = 120_000

// sessionPattern is what ids of sessions look like. They stand among the arguments, where
// a dash in front would make a flag of them.
var sessionPattern = pattern(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,127}$`)

func (r *Request) check() error {
	refuse := func(field, value, reason, next string) error {
		return &lockkeeper.InputError{Field: field, Value: value, Reason: reason, Next: next}
	}
	switch {
	case strings.TrimSpace(r.Prompt) == "":
		return refuse("prompt", r.Prompt, "empty", "say what the agent is to do")
	case r.Dir == "":
		return refuse("directory", r.Dir, "empty", "name the directory that the agent works in")
	case r.Permission != PermitNamed && r.Permission != PermitEdits && r.Permission != PermitAll:
		return refuse("permission", string(r.Permission), "unknown", `use "", "edits" or "all"`)
	case r.Resume != "" && !sessionPattern().MatchString(r.Resume):
		return refuse("session", r.Resume, "not the id of a session", "give the id that the agent reported")
	case r.MaxTurns < 0:
		return refuse("turns", fmt.Sprint(r.MaxTurns), "negative", "")
	case !(r.MaxUSD >= 0): // also when it is not a number
		return refuse("dollars", fmt.Sprint(r.MaxUSD), "negative", "")
	case r.Schema != nil && !json.Valid(r.Schema):
		return refuse("schema", string(r.Schema), "not JSON", "")
	case len(r.Schema) > maxArgument:
		return refuse("schema", fmt.Sprint(len(r.Schema)), fmt.Sprintf("longer than %d bytes", maxArgument), "split the work")
	}
	return nil
}

// cannot refuses the parts of a request that a program has no way to honour.
func (r *Request) cannot(program string, parts ...string) error {
	given := map[string]bool{
		"model":          r.Model != "",
		"allowed tools":  len(r.AllowedTools) > 0,
		"session":        r.Resume != "",
		"limit of turns": r.MaxTurns > 0,
		"limit of money": r.MaxUSD > 0,
	}
	for _, part := range parts {
		if given[part] {
			return &lockkeeper.InputError{Field: part, Value: program, Reason: "this agent has no way to be told", Next: "leave it out, or use another agent"}
		}
	}
	return nil
}

// asked is the prompt for programs that cannot be given a schema: it stands there once.
func (r *Request) asked() string {
	if r.Schema == nil || strings.Contains(r.Prompt, strings.TrimSpace(string(r.Schema))) {
		return r.Prompt
	}
	return r.Prompt + "\n\nAnswer with one JSON document and nothing else. It has to match this JSON schema:\n\n" + string(r.Schema) + "\n"
}
