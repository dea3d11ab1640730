package cli

import (
	"strconv"
	"strings"

	"lockkeeper"
)

// dollars is a flag for an amount of money.
type dollars float64

func (d *dollars) String() string { return strconv.FormatFloat(float64(*d), 'f', -1, 64) }

func (d *dollars) Type() string { return "dollars" }

// Set implements pflag.Value.
func (d *dollars) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(v > 0 && v <= 1e6) { // also when it is not a number
		return &lockkeeper.InputError{Field: "budget", Value: text, Reason: "not an amount of dollars, up to a million", Next: "give one such as 20 or 2.50, or leave it out"}
	}
	*d = dollars(v)
	return nil
}
