package session

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/machine/process"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// watchedTree is a codebase whose held files are compared by one watch and told to another one.
type watchedTree struct {
	*Registry
	looks watch
	hears watch
	told  []HeldChange
}

func newWatchedTree(t *testing.T) *watchedTree {
	t.Helper()
	b := &watchedTree{Registry: newBook(t)}
	t.Chdir(b.app.Root.Dir())
	b.looks = watch{registry: b.Registry}
	b.hears = watch{registry: b.Registry, tell: Watcher{Changed: func(c HeldChange) { b.told = append(b.told, c) }}}
	if err := b.hears.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// look compares once and returns what was told.
func (b *watchedTree) look(t *testing.T) (list []string) {
	t.Helper()
	if err := b.looks.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.hears.hear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.told {
		text := "nothing"
		if c.Rescue != "" {
			e, err := b.app.Shelf().Get(c.Rescue)
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(b.app.Shelf().ContentPath(c.Rescue))
			if err != nil {
				t.Fatal(err)
			}
			text = strings.TrimSpace(string(content)) + " of " + e.Holder
		}
		list = append(list, fmt.Sprintf("%s %s, doubt %t, kept %s", c.Path, c.How, c.Doubt != "", text))
	}
	b.told = nil
	return list
}

func (b *watchedTree) put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(b.at(path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A command holds a file under lock exec. What its own processes write is not reported. What another
// program writes while none of them ran is, although that program leaves no trace.
//
// shows: GP-5
func TestWatchedCommand(t *testing.T) {
	b := newWatchedTree(t)
	b.put(t, "a", "first\n")
	g, err := b.app.Hold(t.Context(), lockkeeper.Request{Holder: "ann", Locks: writes([]string{"a"})}, 0)
	if err != nil {
		t.Fatal(err)
	}
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := b.app.Host.Run(t.Context(), process.Command{Argv: []string{"sh", "-c", `while read -r x; do echo "$x" > a; echo done; done`}, Stdin: in, Stdout: answers, Stderr: os.Stderr,
			Grant: g.ID, Started: func(p lockkeeper.Process) error {
				_, err := b.app.Locks.SetProcess(t.Context(), g.ID, g.Token, p)
				started <- err
				return err
			}})
		done <- err
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	settle := func() { // until the command waits for input, as the watch knows
		t.Helper()
		for m := b.looks.moments[g.ID]; m == nil || !m.Idle(); m = b.looks.moments[g.ID] {
			if told := b.look(t); len(told) != 0 {
				t.Fatalf("told are %q", told)
			}
			time.Sleep(time.Millisecond)
		}
	}
	settle()
	for _, text := range []string{"second", "third"} {
		if _, err := io.WriteString(feed, text+"\n"); err != nil || !lines.Scan() {
			t.Fatal(err)
		}
		settle()
	}
	b.put(t, "a", "by a daemon\n")
	want := "a while no process of the holder's command ran, doubt false, kept third of ann"
	if told := strings.Join(b.look(t), "; "); told != want {
		t.Errorf("told is %q, want %q", told, want)
	}
	if told := b.look(t); len(told) != 0 {
		t.Errorf("told again are %q", told)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A run writes only through the gate. Any other change of a file that one of its items holds is reported.
func TestWatchedRun(t *testing.T) {
	b := newWatchedTree(t)
	if err := os.Mkdir(b.at("test"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.put(t, "test/a", "first\n")
	it := &lockkeeper.Item{ID: "item-1", Stage: lockkeeper.StageRunning, Locks: writes([]string{"test/a"})}
	err := b.app.Locks.Update(t.Context(), func(a *lock.Tx) error { return a.InsertItem(it) })
	if err != nil {
		t.Fatal(err)
	}
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.app.Acquire(t.Context(), lockkeeper.Request{Holder: "run", TTL: time.Hour, Locks: it.Locks, Process: &self, Metadata: map[string]string{lock.ItemKey: it.ID}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if told := b.look(t); len(told) != 0 {
		t.Fatalf("told are %q", told)
	}
	if _, err := landing.Apply(t.Context(), b.app, g.ID, []gate.Change{gate.Put("test/a", []byte("landed\n"))}, true); err != nil {
		t.Fatal(err)
	}
	if told := b.look(t); len(told) != 0 {
		t.Fatalf("a landing of the run is told: %q", told)
	}
	b.put(t, "test/a", "by a daemon\n")
	want := "test/a and not by the gate, through which a run writes, doubt false, kept landed of run"
	if told := strings.Join(b.look(t), "; "); told != want {
		t.Errorf("told is %q, want %q", told, want)
	}
	events, err := b.app.Locks.Events(t.Context(), store.EventQuery{Latest: true, Limit: 1})
	if err != nil || len(events) != 1 || events[0].Kind != lockkeeper.EventGap || events[0].GrantID != g.ID || events[0].Data[lock.ItemKey] != it.ID {
		t.Errorf("the log ends with %+v, %v", events, err)
	}
	if err := os.Remove(b.at("test/a")); err != nil {
		t.Fatal(err)
	}
	if told := b.look(t); len(told) != 1 || !strings.HasSuffix(told[0], "kept by a daemon of run") {
		t.Errorf("a removed file is told as %q", told)
	}
}

// A person writes with any program, so only a change that a session may have made is told.
func TestWatchedPerson(t *testing.T) {
	b := newWatchedTree(t)
	b.put(t, "a", "first\n")
	_, err := b.app.Acquire(t.Context(), lockkeeper.Request{Holder: "ann", TTL: time.Hour, Locks: writes([]string{"a"})}, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.look(t)
	b.put(t, "a", "her own\n")
	if told := b.look(t); len(told) != 0 {
		t.Fatalf("a change that may be the person's is told: %q", told)
	}
	b.in(t, Caller{ID: "other", Agent: "x", Process: newProcess(t)}, func(_ context.Context, s *Session) {
		if err := s.Begin("1", Call{Command: "./daemon.sh"}); err != nil {
			t.Fatal(err)
		}
		s.End("1", true)
	})
	b.put(t, "a", "by a daemon\n")
	if told := b.look(t); len(told) != 1 || !strings.Contains(told[0], "maybe by a command of session") || !strings.HasSuffix(told[0], "doubt true, kept her own of ann") {
		t.Errorf("told is %q", told)
	}
}
