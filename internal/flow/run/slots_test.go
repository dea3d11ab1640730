package run

import (
	"context"
	"errors"
	"testing"
)

// Trials of several processes, and a trial and a run, get different numbers of slots. A test of a
// run waits for its number.
func TestSlotNumbersAreNotShared(t *testing.T) {
	p := &Pipeline{opt: Options{Slots: t.TempDir(), Limits: Limits{Tests: 2}}}
	one, unlockOne, err := p.lockFreeSlot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	two, unlockTwo, err := p.lockFreeSlot(t.Context())
	if err != nil || one != 1 || two != 2 {
		t.Fatalf("%d and %d, %v", one, two, err)
	}
	ended, end := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	end(why)
	if _, err := p.lockSlot(ended, 1); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	got := make(chan error)
	go func() {
		unlock, err := p.lockSlot(t.Context(), 2)
		if err == nil {
			err = unlock()
		}
		got <- err
	}()
	for _, err := range []error{unlockTwo(), <-got, unlockOne()} {
		if err != nil {
			t.Error(err)
		}
	}
}
