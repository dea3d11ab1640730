package agent

import (
	"encoding/json"
	"time"
)

// Result is what an agent did and what it cost. Of a call that failed it holds what is
// known, so that its session can be resumed and its cost counted.
type Result struct {
	Text       string          `json:"text"`
	Structured json.RawMessage `json:"structured,omitempty"` // matches the schema that was asked for

	Session string `json:"session,omitempty"`
	Model   string `json:"model,omitempty"`

	CostUSD  float64       `json:"cost_usd"`
	Priced   bool          `json:"priced"` // the agent said what it cost
	Usage    Usage         `json:"usage"`
	Turns    int           `json:"turns"`
	Duration time.Duration `json:"duration"`

	Denials []Denial `json:"denials,omitempty"`
	Exit    *Exit    `json:"exit,omitempty"` // nil: its end was not seen
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input"` // without those from the cache
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Total is all tokens.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Add is the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite}
}

// Denial is a tool that the agent wanted and might not use.
type Denial struct {
	Tool  string `json:"tool"`
	ID    string `json:"id,omitempty"`
	Input string `json:"input,omitempty"` // in the agent's form, mostly JSON
}
