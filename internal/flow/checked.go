package flow

import "encoding/json"

// A CheckState says how the tests, or the CI checks, of a batch ended.
type CheckState string

// The states.
const (
	CheckPassed  CheckState = "passed"
	CheckFailed  CheckState = "failed"
	CheckSkipped CheckState = "skipped" // there was nothing to run, so nothing is known
)

// End sets the state of checks that are over: those that ran have passed.
func (c *Checked) End() {
	c.State = CheckPassed
	if c.Skipped != "" {
		c.State = CheckSkipped
	}
	c.Passed = c.State == CheckPassed
}

// Cleared reports whether a batch goes on to its next phase. A batch that nothing tests
// does: a person who configured no tests was told so.
func (c *Checked) Cleared() bool {
	return c != nil && (c.State == CheckPassed || c.State == CheckSkipped)
}

// UnmarshalJSON implements json.Unmarshaler. Earlier versions said of skipped checks that
// they had passed.
func (c *Checked) UnmarshalJSON(text []byte) error {
	type plain Checked
	if err := json.Unmarshal(text, (*plain)(c)); err != nil {
		return err
	}
	switch {
	case c.Skipped != "" && (c.Passed || c.State == CheckSkipped):
		c.State = CheckSkipped
	case c.State != "":
	case c.Passed:
		c.State = CheckPassed
	default:
		c.State = CheckFailed
	}
	c.Passed = c.State == CheckPassed
	return nil
}
