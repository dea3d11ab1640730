package hook_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ncruces/go-sqlite3"
)

// If fifty sessions ask for one file at once, one acquires it and the others are refused.
//
// shows: GP-5 PL-42
func TestFiftyAtOnce(t *testing.T) {
	s := newStage(t)
	results := make([]said, 50)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() { results[i] = s.edit(fmt.Sprint("S", i), user) })
	}
	group.Wait()
	got := 0
	for i, r := range results {
		switch {
		case r.code == 0:
			got++
		case r.code != 2 || !strings.Contains(r.err, "REFUSED "+user):
			t.Errorf("%d ended with %d: %s", i, r.code, r.all())
		}
	}
	if got != 1 {
		t.Errorf("%d have the file", got)
	}
	names := map[string]bool{}
	for _, r := range results {
		_, rest, _ := strings.Cut(r.err, "held by ")
		name, _, _ := strings.Cut(rest, ",")
		names[name] = true
	}
	if delete(names, ""); len(names) != 1 {
		t.Errorf("they name %v", names)
	}
}

// Concurrent calls of one session for different files all acquire their file in one grant.
func TestOneSessionAtOnce(t *testing.T) {
	s := newStage(t)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { s.passes(s.edit("A", fmt.Sprintf("app/file_%d.rb", i))) })
	}
	group.Wait()
	grants, err := s.open().Locks.ActiveGrants(t.Context())
	if err != nil || len(grants) != 1 || len(grants[0].WritePaths) != 20 {
		t.Errorf("%+v %v", grants, err)
	}
}

// If the store is busy, damaged, missing or of another version, calls are refused. A call that
// cannot be parsed is also refused.
func TestNeverASilentPass(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, s *stage){
		"the store is busy": func(t *testing.T, s *stage) {
			s.wait = "500ms"
			conn, err := sqlite3.OpenContext(context.Background(), s.at(".lockkeeper/state.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			if err := conn.Exec("BEGIN EXCLUSIVE"); err != nil {
				t.Fatal(err)
			}
		},
		"another process holds the lock": func(t *testing.T, s *stage) {
			s.wait = "500ms"
			dirs, err := filepath.Glob(filepath.Join(s.state, "lockkeeper/sessions/*/*.lock"))
			if err != nil || len(dirs) == 0 {
				t.Fatal(dirs, err)
			}
			for _, name := range dirs {
				f, err := os.OpenFile(name, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { f.Close() })
				if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
					t.Fatal(err)
				}
			}
		},
		"the store is damaged": func(t *testing.T, s *stage) {
			os.Remove(s.at(".lockkeeper/state.db-wal"))
			if err := os.WriteFile(s.at(".lockkeeper/state.db"), []byte(strings.Repeat("not a database ", 1000)), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"the store is gone": func(t *testing.T, s *stage) {
			if err := os.Remove(s.at(".lockkeeper/state.db")); err != nil {
				t.Fatal(err)
			}
		},
		"everything is gone": func(t *testing.T, s *stage) {
			if err := os.RemoveAll(s.at(".lockkeeper")); err != nil {
				t.Fatal(err)
			}
		},
		"the marker is damaged":        func(t *testing.T, s *stage) { s.write(".lockkeeper/space.json", "{") },
		"the configuration is damaged": func(t *testing.T, s *stage) { s.write("lockkeeper.yaml", "what: [") },
		"the session's memory is damaged": func(t *testing.T, s *stage) {
			files, err := filepath.Glob(filepath.Join(s.state, "lockkeeper/sessions/*/*.json"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				if err := os.WriteFile(f, []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.passes(s.edit("A", post))
			harm(t, s)
			s.refuses(s.edit("A", user), "cannot check the locks", "lockkeeper off 30m")
			s.refuses(s.bash("A", "PreToolUse", "echo x > "+user))
			// A busy store can still be read, so the comparison works.
			if r := s.bash("A", "PostToolUse", "make"); name != "the store is busy" && r.code != 2 || r.code == 2 && !strings.Contains(r.err, "could not be compared") {
				t.Errorf("ended with %d: %s", r.code, r.all())
			}
			if r := s.claude("A", "Stop", "", nil); r.code != 1 || r.err == "" {
				t.Errorf("ended with %d: %s", r.code, r.all())
			}
		})
	}
}

// A call whose input never ends is refused within the hook's own deadline.
func TestCallWithoutEnd(t *testing.T) {
	s := newStage(t)
	s.wait = "300ms"
	cmd, out, errs := s.command("claude-code", map[string]any{})
	begun, host, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Close()
	cmd.Stdin = begun
	if _, err := host.WriteString(`{"session_id":"A","hook_event_name":"PreToolUse",`); err != nil {
		t.Fatal(err)
	}
	gaveUp := time.AfterFunc(5*time.Minute, func() { host.Close() })
	err = cmd.Run()
	if !gaveUp.Stop() {
		t.Error("it waited for its host")
	}
	host.Close()
	if _, exited := err.(*exec.ExitError); !exited {
		t.Fatal(err)
	}
	s.refuses(said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}, "the input of the call did not end in time", "lockkeeper off 30m")
}

// Invalid input is refused.
func TestBadInput(t *testing.T) {
	s := newStage(t)
	for name, call := range map[string]map[string]any{
		"no event":   {"session_id": "A"},
		"no session": {"hook_event_name": "PreToolUse", "tool_name": "Edit"},
		"no file":    {"session_id": "A", "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": map[string]any{}},
		"odd input":  {"session_id": "A", "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": []int{1}},
		"no place":   {"session_id": "A", "hook_event_name": "PreToolUse", "tool_name": "Edit", "cwd": "here", "tool_input": map[string]any{"file_path": "a"}},
	} {
		t.Run(name, func(t *testing.T) { s.refuses(s.call("claude-code", call)) })
	}
	s.refuses(s.call("nobody", map[string]any{}), "its hooks are not known")
	s.passes(s.call("claude-code", map[string]any{"session_id": "A", "hook_event_name": "PreToolUse", "tool_name": "WebSearch", "tool_input": map[string]any{"query": "x"}}))
	s.passes(s.call("claude-code", map[string]any{"session_id": "A", "hook_event_name": "Notification"}))
}
