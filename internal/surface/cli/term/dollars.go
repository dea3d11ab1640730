package term

import (
	"strconv"
	"strings"

	"lockkeeper"
)

// Dollars is a flag for an amount of money.
type Dollars float64

func (d *Dollars) String() string { return strconv.FormatFloat(float64(*d), 'f', -1, 64) }

func (d *Dollars) Type() string { return "dollars" }

// Set implements pflag.Value.
func (d *Dollars) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(v > 0 && v <= 1e6) { // also when it is not a number
		return &lockkeeper.InputError{Field: "budget", Value: text, Reason: "not an amount of dollars, up to a million", Next: "give one such as 20 or 2.50, or leave it out"}
	}
	*d = Dollars(v)
	return nil
}
