package flow

import "encoding/json"

// A CheckState is the outcome of the tests or the CI checks of a batch.
type CheckState string

// The states of a check.
const (
	CheckPassed  CheckState = "passed"
	CheckFailed  CheckState = "failed"
	CheckSkipped CheckState = "skipped" // no command ran, so nothing was tested
)

// End sets the state after the last command passed: CheckSkipped if no command ran, else
// CheckPassed.
func (c *Checked) End() {
	c.State = CheckPassed
	if c.Skipped != "" {
		c.State = CheckSkipped
	}
	c.Passed = c.State == CheckPassed
}

// Cleared reports whether the batch can continue. A skipped check does not stop the batch, because
// people were warned that no tests are configured.
func (c *Checked) Cleared() bool {
	return c != nil && (c.State == CheckPassed || c.State == CheckSkipped)
}

// UnmarshalJSON implements json.Unmarshaler. Earlier versions stored skipped checks as passed.
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
