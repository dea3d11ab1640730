package conduct

import (
	"fmt"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
)

// Options say which run is meant and how far it goes. They are the same from the flag or the
// form to the conductor.
type Options struct {
	Flow   string   `json:"flow,omitempty"`        // empty: the one under way, else controllers
	Plan   string   `json:"plan,omitempty"`        // of the flow tasks: the file
	Only   []string `json:"only,omitempty"`        // units, or parts of them; none: all
	Auto   string   `json:"auto_decide,omitempty"` // a policy that decides in place of a person
	Slots  int      `json:"slots,omitempty"`       // agents at once; 0: as configured
	USD    float64  `json:"budget_usd,omitempty"`
	Tokens int64    `json:"budget_tokens,omitempty"`
	Branch string   `json:"branch,omitempty"`
	Retry  bool     `json:"retry,omitempty"` // retry what failed before
	New    bool     `json:"new,omitempty"`   // abandon a run that is not finished
	Wait   bool     `json:"wait,omitempty"`  // do not end while people are needed

	By   lockkeeper.Actor `json:"-"`
	Env  []string         `json:"-"` // of the agents and commands
	Tell func(run.News)   `json:"-"` // hears what happens, from any goroutine; may be nil
}

// mostSlots is far more agents than one machine can run at once.
const mostSlots = 1_000

// Policy checks the options and parses the policy; nil: there is none.
func (o Options) Policy() (*progress.Policy, error) {
	wrong := func(field string, value any, next string) error {
		return &lockkeeper.InputError{Field: field, Value: fmt.Sprint(value), Reason: "out of range", Next: next}
	}
	switch {
	case o.Slots < 0 || o.Slots > mostSlots:
		return nil, wrong("slots", o.Slots, fmt.Sprintf("say how many agents may work at once, 1 to %d", mostSlots))
	case !(o.USD >= 0 && o.USD <= 1e6):
		return nil, wrong("budget_usd", o.USD, "give dollars, such as 20, or leave it out")
	case o.Tokens < 0:
		return nil, wrong("budget_tokens", o.Tokens, "give a number such as 5000000, or leave it out")
	case o.Auto == "":
		return nil, nil
	}
	policy, err := progress.ParsePolicy(o.Auto)
	return &policy, err
}
