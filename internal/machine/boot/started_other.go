//go:build !linux

package boot

import (
	"errors"
	"time"
)

// Started is not supported on this system.
func Started() (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
