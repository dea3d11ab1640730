package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockkeeper"
)

// An act is one output of a played agent after a wait.
type act struct {
	after time.Duration
	says  string
}

// plays returns a Runner that prints at given times and then exits as given. If the context ends
// first, it stops.
func plays(exit Exit, acts ...act) Runner {
	return func(ctx context.Context, c Command) (Exit, error) {
		for _, a := range acts {
			select {
			case <-time.After(a.after):
			case <-ctx.Done():
				return Exit{Code: 143}, fmt.Errorf("run: %w", context.Cause(ctx))
			}
			if _, err := c.Stdout.WriteString(a.says); err != nil {
				return Exit{}, err
			}
		}
		return exit, nil
	}
}

func asks(dir string) Request { return Request{Prompt: "Do it.", Dir: dir, Env: []string{}} }

// story formats the kinds of events with the minute of each.
func story(start time.Time, list []Event) string {
	var parts []string
	for _, e := range list {
		if e.Kind == EventUsage || e.Kind == EventText {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %dm", e.Kind, int(e.At.Sub(start).Minutes())))
	}
	return strings.Join(parts, ", ")
}

// A stall is reported once, and so is its end.
func TestStallIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []Event
		start := time.Now()
		run := plays(Exit{}, act{time.Second, initLine}, act{35 * time.Minute, wordLine}, act{9 * time.Minute, wordLine}, act{11 * time.Minute, goodLine})
		res, err := Call(t.Context(), Claude{}, asks(t.TempDir()), filesIn(t.TempDir()), Options{Run: run, Tell: gather(&list)})
		if err != nil || res.Text != "real" {
			t.Fatal(res, err)
		}
		const want = "started 0m, stalled 10m, moved 35m, stalled 54m, moved 55m"
		if got := story(start, list); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for _, e := range list {
			if e.Kind == EventStalled && e.Wait < DefaultStallAfter {
				t.Errorf("stalled for %s", e.Wait)
			}
		}
	})
}

// The receiver of EventStalled may end the call, which then returns an error of kind Stalled with the
// session.
func TestStalledIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		enough := errors.New("enough")
		tell := func(e Event) {
			if e.Kind == EventStalled {
				cancel(enough)
			}
		}
		tool := `{"type":"assistant","session_id":"s-1","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}` + "\n"
		run := plays(Exit{}, act{0, initLine + tool}, act{time.Hour, goodLine})
		start := time.Now()
		res, err := Call(ctx, Claude{}, asks(t.TempDir()), filesIn(t.TempDir()), Options{Run: run, Tell: tell, StallAfter: 3 * time.Minute})
		var stalled *Error
		if !errors.As(err, &stalled) || stalled.Kind != Stalled || !errors.Is(err, enough) || stalled.Session != "s-1" || !strings.Contains(stalled.Reason, ", since it used the tool Bash: ") {
			t.Errorf("%T %v", err, err)
		}
		if took := time.Since(start); took < 3*time.Minute || took > 3*time.Minute+time.Second || res.Session != "s-1" || !res.Exit.Stopped {
			t.Errorf("%s, %+v", took, res)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		run := plays(Exit{}, act{0, initLine}, act{time.Hour, goodLine})
		_, err := Call(t.Context(), Claude{}, asks(t.TempDir()), filesIn(t.TempDir()), Options{Run: run, Timeout: 5 * time.Minute})
		var late *Error
		if !errors.As(err, &late) || late.Kind != TimedOut || late.Reason != "5m0s" || !strings.Contains(err.Error(), "resume its session s-1") {
			t.Errorf("%T %v", err, err)
		}
		if took := time.Since(start); took > 5*time.Minute+time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// When the context ends, the call ends with its cause.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("the operator said stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		f := filesIn(t.TempDir())
		_, err := Call(ctx, Claude{}, asks(t.TempDir()), f, Options{Run: plays(Exit{}, act{0, initLine}, act{time.Hour, goodLine})})
		if err != why {
			t.Errorf("%T %v", err, err)
		}
		if res, finished, err := Completed(Claude{}, f, nil); finished || err != nil || res.Session != "s-1" {
			t.Error(res, finished, err)
		}
		if _, err := Call(ctx, Claude{}, asks(t.TempDir()), filesIn(t.TempDir()), Options{}); err != why {
			t.Errorf("a call after the end: %v", err)
		}
	})
}

// A complete result counts, whatever ended the agent afterwards. If the agent does not exit after
// its result, the call ends it.
//
// shows: PL-80
func TestFinishedWhoeverDied(t *testing.T) {
	for name, test := range map[string]struct {
		run  Runner
		took time.Duration
	}{
		"killed after its last word":   {plays(Exit{Code: 137, Signal: 9}, act{0, initLine + goodLine}), time.Second},
		"lingers after its last word":  {plays(Exit{}, act{0, initLine + goodLine}, act{time.Hour, ""}), linger + time.Second},
		"ended while it says its last": {plays(Exit{}, act{0, initLine}, act{time.Minute, goodLine}, act{time.Hour, ""}), time.Minute + linger + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				f := filesIn(t.TempDir())
				res, err := Call(t.Context(), Claude{}, asks(t.TempDir()), f, Options{Run: test.run})
				if err != nil || res.Text != "real" || res.CostUSD != 0.5 {
					t.Error(res, err)
				}
				if took := time.Since(start); took > test.took {
					t.Errorf("it took %s", took)
				}
				if again, finished, err := Completed(Claude{}, f, nil); !finished || err != nil || again.Text != "real" || *again.Exit != *res.Exit {
					t.Error(again, finished, err)
				}
			})
		})
	}
}

// A result is not final while background work runs.
func TestLingerWaitsForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := `{"type":"system","subtype":"task_started","session_id":"s-1","task_id":"b1"}` + "\n"
		ended := `{"type":"system","subtype":"task_notification","session_id":"s-1","task_id":"b1","status":"completed"}` + "\n"
		second := strings.Replace(strings.Replace(goodLine, "real", "all of it", 1), "0.5", "0.75", 1)
		run := plays(Exit{}, act{0, initLine + started + goodLine}, act{5 * time.Minute, ended}, act{time.Minute, second})
		res, err := Call(t.Context(), Claude{}, asks(t.TempDir()), filesIn(t.TempDir()), Options{Run: run})
		if err != nil || res.Text != "all of it" || res.CostUSD != 0.75 || res.Turns != 2 {
			t.Error(res, err)
		}
	})
}

// An error of the Runner is returned together with a result.
func TestRunnerTrouble(t *testing.T) {
	left := errors.New("a process would not go")
	for name, test := range map[string]struct {
		run   Runner
		want  error // the wrapped error
		typed error
	}{
		"leftovers beside a result": {func(_ context.Context, c Command) (Exit, error) {
			c.Stdout.WriteString(initLine + goodLine)
			return Exit{}, left
		}, left, nil},
		"leftovers beside an end": {func(ctx context.Context, c Command) (Exit, error) {
			<-ctx.Done()
			return Exit{Code: 143}, errors.Join(context.Cause(ctx), left)
		}, left, nil},
		"no such program": {func(context.Context, Command) (Exit, error) {
			return Exit{Code: 127}, fmt.Errorf("run: %w", exec.ErrNotFound)
		}, exec.ErrNotFound, &Error{Kind: Refused}},
		"not startable": {func(context.Context, Command) (Exit, error) { return Exit{Code: 126}, fs.ErrPermission }, fs.ErrPermission, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := Call(t.Context(), Claude{}, asks(t.TempDir()), filesIn(t.TempDir()), Options{Run: test.run, Timeout: time.Minute})
				if !errors.Is(err, test.want) || strings.Count(err.Error(), test.want.Error()) != 1 {
					t.Errorf("%T %v", err, err)
				}
				if test.typed != nil && !sameType(err, test.typed) {
					t.Errorf("%T", err)
				}
			})
		})
	}
}

// A call ends an agent that prints too much.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var acts []act
		for range 100 {
			acts = append(acts, act{time.Second, strings.Repeat("x", 1<<20)})
		}
		start := time.Now()
		_, err := Call(t.Context(), Claude{}, asks(t.TempDir()), filesIn(t.TempDir()), Options{Run: plays(Exit{}, acts...), MaxOutput: 10 << 20})
		if !sameType(err, &Error{Kind: Garbage}) || !strings.Contains(err.Error(), "more than 10 MB") || time.Since(start) > 15*time.Second {
			t.Errorf("%T %v after %s", err, err, time.Since(start))
		}
	})
}

// An existing output is not overwritten, because it may contain a paid result.
func TestOutputIsKept(t *testing.T) {
	f := filesIn(t.TempDir())
	run := plays(Exit{}, act{0, initLine + goodLine})
	if _, err := Call(t.Context(), Claude{}, asks(t.TempDir()), f, Options{Run: run}); err != nil {
		t.Fatal(err)
	}
	_, err := Call(t.Context(), Claude{}, asks(t.TempDir()), f, Options{Run: run})
	if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("%T %v", err, err)
	}
	if res, finished, err := Completed(Claude{}, f, nil); !finished || err != nil || res.Text != "real" {
		t.Error(res, finished, err)
	}
	for _, name := range []string{f.Output, f.Log, f.Prompt(), f.Exit()} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

// A command without a protocol is finished if it exited by itself, but not if the call stopped
// it.
func TestPlainCommandEnds(t *testing.T) {
	gives := func(code int, ended bool) Runner {
		return func(ctx context.Context, c Command) (Exit, error) {
			c.Stdout.WriteString("some words\nand no end")
			if !ended {
				return Exit{Code: code}, nil
			}
			<-ctx.Done()
			return Exit{Code: code}, context.Cause(ctx)
		}
	}
	for name, test := range map[string]struct {
		run  Runner
		want error
	}{
		"well":                         {gives(0, false), nil},
		"badly":                        {gives(4, false), &Error{Kind: Crashed}},
		"when told, as if it was done": {gives(0, true), &Error{Kind: TimedOut}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := filesIn(t.TempDir())
				res, err := Call(t.Context(), Plain{Argv: []string{"x"}}, asks(t.TempDir()), f, Options{Run: test.run, Timeout: time.Minute})
				if !sameType(err, test.want) || res.Text != "some words\nand no end" {
					t.Errorf("%T %v, %q", err, err, res.Text)
				}
				if _, finished, err := Completed(Plain{}, f, nil); finished != (test.want == nil) || err != nil {
					t.Error(finished, err)
				}
				if err := os.Remove(f.Exit()); err != nil {
					t.Fatal(err)
				}
				if _, finished, err := Completed(Plain{}, f, nil); finished || err != nil {
					t.Error("finished without a record of its end", err)
				}
			})
		})
	}
}
