package lockkeeper_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"lockkeeper"
)

func TestNextStepIsData(t *testing.T) {
	input := &lockkeeper.InputError{Field: "path", Value: "../x", Reason: "outside of the root", Next: "name a file inside the root"}
	hinted := lockkeeper.WithNext(errors.New("the disk is full"), "free some space")
	for name, c := range map[string]struct {
		err           error
		message, next string
	}{
		"none":            {errors.New("a; next: b"), "a; next: b", ""},
		"of a type":       {input, `path "../x": outside of the root`, "name a file inside the root"},
		"added":           {hinted, "the disk is full", "free some space"},
		"wrapped":         {fmt.Errorf("write: %w", hinted), "write: the disk is full", "free some space"},
		"in the middle":   {fmt.Errorf("%w; nothing was written", hinted), "the disk is full; nothing was written", "free some space"},
		"added to none":   {lockkeeper.WithNext(input, ""), `path "../x": outside of the root`, "name a file inside the root"},
		"first of a join": {errors.Join(errors.New("a"), hinted, input), "a\nthe disk is full\n" + input.Error(), "free some space"},
	} {
		if got := lockkeeper.Message(c.err); got != c.message {
			t.Errorf("%s: message %q, want %q", name, got, c.message)
		}
		if got := lockkeeper.NextStep(c.err); got != c.next {
			t.Errorf("%s: next step %q, want %q", name, got, c.next)
		}
	}
	if lockkeeper.WithNext(nil, "x") != nil {
		t.Error("no error became one")
	}
	if !errors.Is(hinted, errors.Unwrap(hinted)) || hinted.Error() != "the disk is full; next: free some space" {
		t.Errorf("%v does not wrap its cause, or hides its step", hinted)
	}
	if parts := lockkeeper.Parts(errors.Join(errors.Join(input, hinted), input)); len(parts) != 3 {
		t.Errorf("%d parts: %v", len(parts), parts)
	}
}

func TestLocalTimes(t *testing.T) {
	zone := time.Local
	t.Cleanup(func() { time.Local = zone })
	time.Local = time.FixedZone("test", 2*60*60)
	for message, want := range map[string]string{
		"decided at 2026-01-31T09:00:00Z by ada":       "decided at 2026-01-31 11:00:00 +0200 by ada",
		"changed at 2026-01-31 23:30:00.250Z, so":      "changed at 2026-02-01 01:30:00 +0200, so",
		"rescue show 20260131T090000.123-1b4e28ba":     "rescue show 20260131T090000.123-1b4e28ba",
		"2026-13-31T09:00:00Z and 2026-01-31T09:00:00": "2026-13-31T09:00:00Z and 2026-01-31T09:00:00",
	} {
		if got := lockkeeper.LocalTimes(message); got != want {
			t.Errorf("%q is %q, want %q", message, got, want)
		}
	}
}
