//go:build !linux

package boot

import (
	"errors"
	"time"
)

// Started is not known here.
func Started() (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
