package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lockkeeper/internal/machine/filelock"
)

// Tests use the number of their slot (LOCKKEEPER_SLOT) for what they cannot share, such as a
// database. The queue numbers only the tests of runs. So a file for each number, locked while the
// number is in use, also covers trials of other processes.

// lockSlot waits for the number of a slot. Unlock frees it.
func (p *Pipeline) lockSlot(ctx context.Context, slot int) (unlock func() error, err error) {
	if slot == 0 || p.opt.Slots == "" {
		return func() error { return nil }, nil
	}
	f, err := p.openSlot(slot)
	if err != nil {
		return nil, err
	}
	locked, err := filelock.Await(ctx, f, func() { f.Close() })
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !locked {
		return nil, context.Cause(ctx)
	}
	return func() error { return errors.Join(filelock.Unlock(f), f.Close()) }, nil
}

// lockFreeSlot returns the first number that nothing uses, or waits for number 1 if there is none.
func (p *Pipeline) lockFreeSlot(ctx context.Context) (slot int, unlock func() error, err error) {
	for slot = 1; slot <= p.opt.Limits.Tests && p.opt.Slots != ""; slot++ {
		f, err := p.openSlot(slot)
		if err != nil {
			return 0, nil, err
		}
		if free, err := filelock.Try(f); err != nil || free {
			return slot, func() error { return errors.Join(filelock.Unlock(f), f.Close()) }, err
		}
		if err := f.Close(); err != nil {
			return 0, nil, err
		}
	}
	unlock, err = p.lockSlot(ctx, 1)
	return 1, unlock, err
}

func (p *Pipeline) openSlot(slot int) (*os.File, error) {
	if err := os.MkdirAll(p.opt.Slots, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(p.opt.Slots, fmt.Sprint(slot)), os.O_RDONLY|os.O_CREATE, 0o600)
}
