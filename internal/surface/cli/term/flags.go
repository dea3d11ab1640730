package term

import (
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// Duration is a flag for a duration, in the syntax of the configuration.
type Duration time.Duration

func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	v, err := config.ParseDuration(text)
	*d = Duration(v)
	return err
}

// Dollars is a flag for an amount of money.
type Dollars float64

func (d *Dollars) String() string { return strconv.FormatFloat(float64(*d), 'f', -1, 64) }

func (d *Dollars) Type() string { return "dollars" }

// Set implements pflag.Value.
func (d *Dollars) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(v > 0 && v <= 1e6) { // false for NaN
		return &lockkeeper.InputError{Field: "budget", Value: text, Reason: "not an amount of dollars, up to a million", Next: "write it like 20 or 2.50, or omit the flag"}
	}
	*d = Dollars(v)
	return nil
}
