package view

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Callers that arrive during a read share the next one, which starts after they arrived.
func TestReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f sharedReads
		var reads atomic.Int64
		goOn := make(chan struct{})
		read := func(context.Context) (int64, error) {
			n := reads.Add(1)
			<-goOn
			return n, nil
		}
		ask := func(want int64) {
			go func() {
				if got, err := share(t.Context(), &f, "x", read); err != nil || got != want {
					t.Errorf("got read %d, %v, want %d", got, err, want)
				}
			}()
			synctest.Wait()
		}
		ask(1)
		for range 50 {
			ask(2)
		}
		goOn <- struct{}{}
		synctest.Wait()
		ask(3)
		goOn <- struct{}{}
		synctest.Wait()
		goOn <- struct{}{}
		synctest.Wait()
		if n := reads.Load(); n != 3 || len(f.byName) != 0 {
			t.Errorf("%d reads for 52 callers, %d names are left", n, len(f.byName))
		}
	})
}

// A caller whose context ends does not end the shared read. The next caller does a read
// that its callers have left.
func TestCallerCanLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f sharedReads
		goOn := make(chan struct{})
		read := func(ctx context.Context) (string, error) {
			<-goOn
			return "seen", ctx.Err()
		}
		ask := func(ctx context.Context, want string, wrong error) {
			go func() {
				if got, err := share(ctx, &f, "x", read); got != want || !errors.Is(err, wrong) {
					t.Errorf("got %q, %v, want %q, %v", got, err, want, wrong)
				}
			}()
			synctest.Wait()
		}
		leads, leave := context.WithCancel(t.Context())
		waits, leaveToo := context.WithCancel(t.Context())
		ask(leads, "seen", nil)
		ask(waits, "", context.Canceled)
		leave()
		leaveToo()
		synctest.Wait()
		goOn <- struct{}{}
		synctest.Wait()
		ask(t.Context(), "seen", nil)
		goOn <- struct{}{}
	})
}

// A read that panics does not block later callers.
func TestReadPanics(t *testing.T) {
	var f sharedReads
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		share(t.Context(), &f, "x", func(context.Context) (int, error) { panic("oh") })
	}()
	if got, err := share(t.Context(), &f, "x", func(context.Context) (int, error) { return 1, nil }); got != 1 || err != nil {
		t.Errorf("after a panic: %d, %v", got, err)
	}
}

func TestWholeText(t *testing.T) {
	whole := []byte("aä名😀z")
	for from := range whole {
		for to := from; to <= len(whole); to++ {
			at, text := wholeText(int64(from), whole[from:to])
			if int(at) < from || int(at)+len(text) > to {
				t.Fatalf("from %d to %d: %q at %d", from, to, text, at)
			}
			for _, r := range text {
				if r == '\uFFFD' {
					t.Fatalf("from %d to %d: half a character in %q", from, to, text)
				}
			}
		}
	}
	if _, text := wholeText(0, []byte("\xff\xfe binary")); text != "\xff\xfe binary" {
		t.Errorf("what is no text is cut to %q", text)
	}
}
