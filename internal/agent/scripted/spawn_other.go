//go:build !unix

package scripted

import (
	"errors"
	"time"
)

func spawn(time.Duration) error { return errors.New("processes are spawned on Unix alone") }
