package term

import (
	"time"

	"lockkeeper/internal/project/config"
)

// Duration is a flag for a length of time, written as in the configuration.
type Duration time.Duration

func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *Duration) Type() string { return "duration" }

func (d *Duration) Set(text string) error {
	v, err := config.ParseDuration(text)
	*d = Duration(v)
	return err
}
