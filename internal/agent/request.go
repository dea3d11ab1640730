package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lockkeeper"
)

// A Permission is what an agent may do without asking. Everything else is denied, because no
// person can answer.
type Permission string

const (
	PermitDefault Permission = ""    // the default permissions of the program
	PermitAll     Permission = "all" // everything; only for an agent in a sandbox
)

// A Request describes one call of an agent.
type Request struct {
	Prompt string
	Dir    string   // working directory of the agent
	Env    []string // nil: the environment of this process
	Model  string   // empty: the program's default

	Permission Permission

	Schema []byte // JSON schema of the answer; nil: any text
	Resume string // the session to resume; empty: a new one

	MaxUSD float64  // 0: no limit
	Extra  []string // more arguments, in the program's spelling
}

// maxArgument is the longest argument in bytes. Linux refuses one of 128 KiB.
const maxArgument = 120_000

// sessionPattern matches the ids of sessions. A leading dash would make an id a flag.
var sessionPattern = pattern(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,127}$`)

func (r *Request) check() error {
	refuse := func(field, value, reason, next string) error {
		return &lockkeeper.InputError{Field: field, Value: value, Reason: reason, Next: next}
	}
	switch {
	case strings.TrimSpace(r.Prompt) == "":
		return refuse("prompt", r.Prompt, "empty", "describe the task")
	case r.Dir == "":
		return refuse("directory", r.Dir, "empty", "name the agent's working directory")
	case r.Permission != PermitDefault && r.Permission != PermitAll:
		return refuse("permission", string(r.Permission), "unknown", `use "" or "all"`)
	case r.Resume != "" && !sessionPattern().MatchString(r.Resume):
		return refuse("session", r.Resume, "not a session id", "give the id that the agent reported")
	case !(r.MaxUSD >= 0): // also refuses NaN
		return refuse("dollars", fmt.Sprint(r.MaxUSD), "negative", "")
	case r.Schema != nil && !json.Valid(r.Schema):
		return refuse("schema", string(r.Schema), "not JSON", "")
	case len(r.Schema) > maxArgument:
		return refuse("schema", fmt.Sprint(len(r.Schema)), fmt.Sprintf("longer than %d bytes", maxArgument), "split the work")
	}
	return nil
}

// cannot refuses the parts of a request that a program does not support.
func (r *Request) cannot(program string, parts ...string) error {
	given := map[string]bool{
		"model":      r.Model != "",
		"session":    r.Resume != "",
		"cost limit": r.MaxUSD > 0,
	}
	for _, part := range parts {
		if given[part] {
			return &lockkeeper.InputError{Field: part, Value: program, Reason: "not supported by this agent", Next: "leave it out, or use another agent"}
		}
	}
	return nil
}

// asked returns the prompt for programs without an option for a schema. It adds the schema
// unless the prompt contains it.
func (r *Request) asked() string {
	if r.Schema == nil || strings.Contains(r.Prompt, strings.TrimSpace(string(r.Schema))) {
		return r.Prompt
	}
	return r.Prompt + "\n\nAnswer with one JSON document and nothing else. It has to match this JSON schema:\n\n" + string(r.Schema) + "\n"
}

// A Result is the outcome of a call and its cost. For a failed call it has the known facts, so
// that the session can be resumed and the cost counted.
type Result struct {
	Text       string          `json:"text"`
	Structured json.RawMessage `json:"structured,omitempty"` // matches the schema of the request
	Note       string          `json:"note,omitempty"`       // what the answer had in addition to the structured value

	Session string `json:"session,omitempty"`
	Model   string `json:"model,omitempty"`

	CostUSD  float64       `json:"cost_usd"`
	Priced   bool          `json:"priced"` // the agent reported the cost
	Usage    Usage         `json:"usage"`
	Turns    int           `json:"turns"`
	Duration time.Duration `json:"duration"`

	Denials []Denial `json:"denials,omitempty"`
	Exit    *Exit    `json:"exit,omitempty"` // nil: not observed
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input"` // input tokens, without cached ones
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Total returns the number of all tokens.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite}
}

// A Denial is a tool call that was not permitted.
type Denial struct {
	Tool  string `json:"tool"`
	ID    string `json:"id,omitempty"`
	Input string `json:"input,omitempty"` // as the agent printed it, usually JSON
}
