//go:build !linux

package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
)

var errOther = fmt.Errorf("overlay: only Linux has overlays: %w", errors.ErrUnsupported)

// Main does nothing on this system.
func Main([]string) (handled bool, code int) { return false, 0 }

// Mount is not supported on this system.
func (s Stack) Mount(string) (*os.File, error) { return nil, errOther }

// Open is not supported on this system.
func Open(context.Context, Stack) (*os.File, error) { return nil, errOther }

// Probe is not supported on this system.
func Probe(context.Context, string) error { return errOther }
