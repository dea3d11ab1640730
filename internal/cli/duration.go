package cli

import (
	"time"

	"lockkeeper/internal/config"
)

// duration is a flag for a length of time, written as in the configuration.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	v, err := config.ParseDuration(text)
	*d = duration(v)
	return err
}
