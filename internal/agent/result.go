package agent

import (
	"encoding/json"
	"time"
)

// A Result is the outcome of a call and its cost. For a failed call it has the known facts, so
// that the session can be resumed and the cost counted.
type Result struct {
	Text       string          `json:"text"`
	Structured json.RawMessage `json:"structured,omitempty"` // matches the schema of the request

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
	Input      int64 `json:"input"` // without cached ones
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Total returns the number of all tokens.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite}
}

// A Denial is a tool call that was not permitted.
type Denial struct {
	Tool  string `json:"tool"`
	ID    string `json:"id,omitempty"`
	Input string `json:"input,omitempty"` // as the agent printed it, usually JSON
}
