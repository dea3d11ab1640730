package conduct

import (
	"fmt"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// Options select a run and its extent. Flags and forms set them, and the conductor reads them.
type Options struct {
	Flow   string   `json:"flow,omitempty"`        // empty: see FlowName
	Plan   string   `json:"plan,omitempty"`        // the plan file of a flow that needs one
	Only   []string `json:"only,omitempty"`        // units, or parts of them; empty: all
	Auto   string   `json:"auto_decide,omitempty"` // a policy that decides in place of people
	Slots  int      `json:"slots,omitempty"`       // concurrent agents; 0: as configured
	USD    float64  `json:"budget_usd,omitempty"`
	Tokens int64    `json:"budget_tokens,omitempty"`
	Branch string   `json:"branch,omitempty"`
	Retry  bool     `json:"retry,omitempty"` // retry failed work
	New    bool     `json:"new,omitempty"`   // abandon an unfinished run
	Wait   bool     `json:"wait,omitempty"`  // do not end while decisions are open

	By    lockkeeper.Actor             `json:"-"`
	Env   []string                     `json:"-"` // the environment of agents and commands
	Tell  func(run.News)               `json:"-"` // as run.Options.Tell
	Wants func(unit, part string) bool `json:"-"` // as run.Options.Wants
}

// mostSlots is far above the number of agents that one machine can run.
const mostSlots = 1_000

// Policy checks the options and parses Auto. It returns nil if people decide.
func (o Options) Policy() (*progress.Policy, error) {
	invalid := func(field string, value any, next string) error {
		return &lockkeeper.InputError{Field: field, Value: fmt.Sprint(value), Reason: "out of range", Next: next}
	}
	switch {
	case o.Slots < 0 || o.Slots > mostSlots:
		return nil, invalid("slots", o.Slots, fmt.Sprintf("use 1 to %d", mostSlots))
	case !(o.USD >= 0 && o.USD <= 1e6):
		return nil, invalid("budget_usd", o.USD, "give dollars, such as 20, or leave it out")
	case o.Tokens < 0:
		return nil, invalid("budget_tokens", o.Tokens, "give a number such as 5000000, or leave it out")
	case o.Auto == "":
		return nil, nil
	}
	policy, err := progress.ParsePolicy(o.Auto)
	return &policy, err
}
