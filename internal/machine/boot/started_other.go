//go:build !linux

package boot

import (
	"errors"
	"time"
)

// Started returns errors.ErrUnsupported on this system.
func Started() (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
