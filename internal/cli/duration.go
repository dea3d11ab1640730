package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// duration is a flag for a length of time: 30m, 1h30m, 7d, or whole seconds.
// Whether a negative one makes sense is for the receiver to say.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	v, err := parseDuration(text)
	*d = duration(v)
	return err
}

func parseDuration(text string) (time.Duration, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseInt(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("not a duration, write it like 45s, 30m, 1h30m or 7d")
	}
	return d, nil
}
