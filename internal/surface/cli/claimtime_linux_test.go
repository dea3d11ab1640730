package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
)

// A watch is a clock that advances only during a wait, and then by the whole wait.
type watch struct {
	now    time.Time
	waits  []time.Duration
	before func(n int) // called before the n-th wait, counted from 1
}

func (w *watch) after(d time.Duration) <-chan time.Time {
	w.waits = append(w.waits, d)
	w.before(len(w.waits))
	w.now = w.now.Add(d)
	fired := make(chan time.Time, 1)
	fired <- w.now
	return fired
}

// While a person waits, the command retries every 5 seconds and after 2 minutes offers to cancel or to override.
// After a release, the next retry succeeds.
//
// shows: LM-15 LM-18 LM-45
func TestWaitLooksEvery5SecondsAndAsksAfter2Minutes(t *testing.T) {
	d := newBook(t, "")
	d.foreign("Chapter_03", "CLI-12345", 3*time.Minute)
	claim := func(before func(n int), answers ...string) (waits []time.Duration) {
		t.Helper()
		d.forget()
		w := &watch{now: time.Now(), before: before}
		var typing sync.WaitGroup
		typing.Go(func() {
			for _, answer := range answers {
				asked, typed, _ := strings.Cut(answer, " = ")
				d.sees(asked)
				d.past(asked)
				io.WriteString(d.person, typed+"\n")
			}
		})
		code := cli.Main(context.Background(), &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env,
			Now: func() time.Time { return w.now }, After: w.after}, []string{"claim", "Chapter_03", "--instance", "CLI-2"})
		typing.Wait()
		d.sees("claimed by CLI-2: Chapter_03")
		if code != 0 {
			t.Errorf("ended with %d", code)
		}
		return w.waits
	}
	const first = "checks every 5 seconds)\r\n2. Cancel operation\r\n3. Override lock (not recommended)\r\n\r\nChoose option (1-3): = 1"
	got := claim(func(n int) {
		if n == 3 {
			if err := os.WriteFile(d.locksFile(), []byte(`{"locks": []}`), 0o644); err != nil {
				t.Error(err)
			}
		}
	}, first)
	if want := slices.Repeat([]time.Duration{5 * time.Second}, 3); !slices.Equal(got, want) {
		t.Errorf("waited %v", got)
	}
	d.must(0, "unclaim", "--instance", "CLI-2")
	d.foreign("Chapter_03", "CLI-12345", 3*time.Minute)
	got = claim(func(int) {}, first, "Chapter_03 is still locked after 2m = ",
		"Options:\r\n1. Cancel operation\r\n2. Override lock (not recommended)\r\n\r\nChoose option (1-2): = 2")
	if want := slices.Repeat([]time.Duration{5 * time.Second}, 24); !slices.Equal(got, want) {
		t.Errorf("waited %v", got)
	}
}

// Without a terminal, the same wait fails after 2 minutes.
//
// shows: LM-18 GP-43
func TestWaitOfAScriptEndsAfter2Minutes(t *testing.T) {
	d := newBook(t, "")
	d.foreign("Chapter_03", "CLI-12345", 3*time.Minute)
	w := &watch{now: time.Now(), before: func(int) {}}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer nothing.Close()
	code := cli.Main(context.Background(), &term.IO{In: nothing, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env,
		Now: func() time.Time { return w.now }, After: w.after}, []string{"claim", "Chapter_03", "--instance", "CLI-2", "--on-conflict", "wait"})
	if shown := d.sees("nothing was claimed"); code != 4 || len(w.waits) != 24 || !strings.Contains(shown, "waited 2m") {
		t.Errorf("ended with %d after %v:\n%s", code, w.waits, shown)
	}
}

// If another tool claims a held path in the file, the server logs it within a second, each time.
//
// shows: LM-42 LM-43 CF-39
func TestServerTellsOfAForeignClaimWithinASecond(t *testing.T) {
	d := newBook(t, "")
	d.must(0, "claim", "StyleSystem", "--instance", "CLI-1")
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	serving.Go(func() {
		cli.Main(ctx, &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}, []string{"serve"})
	})
	d.sees("Ctrl-C stops the server")
	const tries = 20
	for soon, i := 0, 0; soon < 5; i++ { // a busy machine can delay some
		if i == tries {
			t.Fatalf("%d of %d claims were told within a second", soon, tries)
		}
		instance, began := fmt.Sprint("CLI-6", i), time.Now()
		d.foreign("StyleSystem", instance, 0)
		d.sees(instance + " claims StyleSystem in the lock file, but CLI-1")
		took := time.Since(began)
		if took <= time.Second {
			soon++
		}
		t.Log("told after", took)
	}
}
