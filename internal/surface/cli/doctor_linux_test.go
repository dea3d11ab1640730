package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"lockkeeper/internal/surface/doctor"
	"lockkeeper/internal/surface/view"
)

// newHouse returns a console with the test binary as lockkeeper in PATH, and with placeholder programs for
// agents.
func newHouse(t *testing.T, agents ...string) *console {
	t.Helper()
	d := newConsole(t)
	bin, home := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "lockkeeper")); err != nil {
		t.Fatal(err)
	}
	for _, name := range agents {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.env = append(d.env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "GORACE=atexit_sleep_ms=0")
	return d
}

// examine runs doctor and returns its report.
func (d *console) examine(want int) *doctor.Report {
	d.t.Helper()
	r := &doctor.Report{}
	if err := json.Unmarshal([]byte(d.must(want, "doctor", "--json")), r); err != nil {
		d.t.Fatal(err)
	}
	return r
}

// way returns the first protection for a writer.
func way(t *testing.T, r *doctor.Report, writer string) view.Protection {
	t.Helper()
	i := slices.IndexFunc(r.Protections, func(w view.Protection) bool { return w.Writer == writer })
	if i < 0 {
		t.Fatalf("nothing is said of %s: %+v", writer, r.Protections)
	}
	return r.Protections[i]
}

func found(t *testing.T, r *doctor.Report, name string, ok bool, words ...string) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name && c.OK == ok {
			for _, w := range words {
				if !strings.Contains(c.Fact+c.Next, w) {
					t.Errorf("%s does not say %q: %+v", name, w, c)
				}
			}
			return
		}
	}
	t.Errorf("%s is not found to be %v: %+v", name, ok, r.Checks)
}

// One command creates the root and installs hooks, after a person agrees. A second call changes nothing, and an
// undo restores all files. Protections that are enforced at once are tried. A host that runs hooks only after a
// person trusts them is not reported as enforced.
//
// shows: DL-72 GP-5
func TestInitAgent(t *testing.T) {
	for agent, ends := range map[string]struct{ summary, level, fact string }{
		"claude": {"\nenforced: claude (hook)", view.Enforced, "a forbidden write was tried and refused"},
		"codex":  {"\nadvisory: codex", view.Advisory, "once you have trusted it"},
		"gemini": {"\nenforced: gemini (hook)", view.Enforced, "a forbidden write was tried and refused"}, // the user's settings need no trust
	} {
		t.Run(agent, func(t *testing.T) {
			d := newHouse(t, agent)
			before := d.files()
			d.agreeing("no", 1, "init", agent)
			if got := d.files(); got != before {
				t.Errorf("files were changed against the answer:\n%s", got)
			}
			d.mu.Lock()
			d.shown.Reset()
			d.mu.Unlock()
			out := d.agreeing("yes", 0, "init", agent)
			if !strings.Contains(out, "lockkeeper hook "+agent) || !strings.HasSuffix(out, ends.summary) {
				t.Errorf("answered\n%s", out)
			}
			enrolled := d.files()
			if out := d.must(0, "init", agent); !strings.Contains(out, "already enrolled; nothing changed") {
				t.Errorf("answered\n%s", out)
			}
			if got := d.files(); got != enrolled {
				t.Errorf("a second time files were changed:\n%s", got)
			}
			r := d.examine(0)
			if w := way(t, r, agent); w.Level != ends.level || w.Broken || !strings.Contains(w.Fact, ends.fact) {
				t.Errorf("%+v", w)
			}
			if held := d.must(0, "status", "--json"); !strings.Contains(held, `"held": []`) || !strings.Contains(held, `"sessions": []`) || !strings.Contains(held, `"gaps": []`) {
				t.Errorf("the trial left something: %s", held)
			}
			d.must(0, "init", "--undo", "--yes")
			if got := d.files(); got != before {
				t.Errorf("undone there is\n%s\nbefore there was\n%s", got, before)
			}
		})
	}
}

// files returns the names and contents of the files in the root, except Lockkeeper's own.
func (d *console) files() string {
	d.t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(d.dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.Name() == ".lockkeeper" {
			return errOr(err, filepath.SkipDir)
		}
		fmt.Fprintln(&out, name)
		if e.Type().IsRegular() {
			text, err := os.ReadFile(name)
			fmt.Fprintf(&out, "%q\n", text)
			return err
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return out.String()
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// An agent cannot remove its own hooks, disable checks, or release locks of other holders.
//
// shows: GP-5
func TestAgentMayNotUndo(t *testing.T) {
	d := newHouse(t, "claude")
	d.must(0, "init", "claude", "--yes")
	before := d.files()
	grant := d.must(0, "lock", "acquire", "--holder", "otter", "--write", "a")
	d.env = append(d.env, "CLAUDECODE=1")
	for _, args := range [][]string{{"init", "--undo", "--yes"}, {"init", "claude", "--undo", "--yes"}, {"off", "30m"}, {"lock", "clear"}, {"lock", "force-release", grant, "--reason", "mine"}} {
		d.must(1, args...)
	}
	if got := d.files(); got != before {
		t.Error("files were changed")
	}
	d.must(3, "lock", "check", "--write", "a")
}

// beforeWrite is the command that init registers with Claude Code to run before a write.
const beforeWrite = "if command -v lockkeeper-hook >/dev/null; then lockkeeper-hook claude-code; else lockkeeper hook claude-code; fi" + unlessMissing

const unlessMissing = " || { [ $? -ne 127 ] || echo 'The program lockkeeper is not installed or not in PATH. It checks each write, so every write is refused. Tell your user to install it.' >&2; exit 2; }"

// The doctor reports each wrong setup and exits with code 1.
func TestDoctorFinds(t *testing.T) {
	settings := func(d *console) string { return filepath.Join(d.dir, ".claude/settings.json") }
	edit := func(d *console, old, new string) {
		d.t.Helper()
		text, err := os.ReadFile(settings(d))
		if err != nil || !bytes.Contains(text, []byte(old)) {
			d.t.Fatalf("%v %s", err, text)
		}
		if err := os.WriteFile(settings(d), bytes.ReplaceAll(text, []byte(old), []byte(new)), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		harm func(d *console)
		want string // expected fact about claude
	}{
		"a hook that was removed": {func(d *console) {
			if err := os.WriteFile(settings(d), []byte("{}"), 0o644); err != nil {
				d.t.Fatal(err)
			}
		}, "its hook was removed"},
		"settings that were removed": {func(d *console) {
			if err := os.Remove(settings(d)); err != nil {
				d.t.Fatal(err)
			}
		}, "its hook was removed"},
		"a program that is gone": {func(d *console) { edit(d, "lockkeeper hook", "PATH=/nowhere lockkeeper hook") }, "so every write is refused"},
		"a program that is gone, and no refusal": {func(d *console) {
			edit(d, unlessMissing, "")
			edit(d, "lockkeeper hook", "PATH=/nowhere lockkeeper hook")
		}, "so every write is allowed"},
		"a hook that checks nothing": {func(d *console) { edit(d, beforeWrite, "true lockkeeper hook claude-code") }, "so every write is allowed"},
		"a hook that lets pass what is held": {func(d *console) {
			stub := "#!/bin/sh\ngrep -qx '{}' && echo 'REFUSED ' >&2 && exit 2\nexit 0\n"
			for _, e := range d.env {
				if path, is := strings.CutPrefix(e, "PATH="); is {
					bin, _, _ := strings.Cut(path, ":")
					if err := os.WriteFile(filepath.Join(bin, "lockkeeper-hook"), []byte(stub), 0o755); err != nil {
						d.t.Fatal(err)
					}
				}
			}
		}, "its hook allowed a write to a locked file"},
		"a setting that stops all hooks": {func(d *console) {
			edit(d, "{\n  \"hooks\"", "{\n  \"disableAllHooks\": true,\n  \"hooks\"")
		}, "disableAllHooks in .claude/settings.json"},
		"settings that are broken": {func(d *console) { edit(d, "\"hooks\": {", "\"hooks\": {,") }, ".claude/settings.json:2:"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newHouse(t, "claude")
			d.must(0, "init", "claude", "--yes")
			for _, v := range d.env { // the hooks in the user's settings would still work
				if home, is := strings.CutPrefix(v, "HOME="); is {
					if err := os.Remove(filepath.Join(home, ".claude/settings.json")); err != nil {
						t.Fatal(err)
					}
				}
			}
			test.harm(d)
			r := d.examine(1)
			if w := way(t, r, "claude"); !w.Broken || !strings.Contains(w.Fact, test.want) || w.Next == "" {
				t.Errorf("%+v", w)
			}
			if !strings.Contains(r.Summary, "broken: claude") {
				t.Error(r.Summary)
			}
			text := d.must(1, "doctor")
			if !strings.Contains(text, "BROKEN") || !strings.Contains(text, test.want) {
				t.Error(text)
			}
		})
	}
}

// An advisory protection is not a failure, and its next step says how to improve it.
func TestDoctorAdvises(t *testing.T) {
	d := newHouse(t, "claude", "codex")
	if err := os.WriteFile(filepath.Join(d.dir, "lockkeeper.yaml"), []byte("agent:\n  sandbox: off\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.must(0, "init", "codex", "--yes")
	r := d.examine(0)
	for writer, words := range map[string]string{"runs": "switched off", "claude": "has no hooks here", "codex": "once you have trusted it"} {
		if w := way(t, r, writer); w.Level != view.Advisory || w.Broken || w.Next == "" || !strings.Contains(w.Fact, words) {
			t.Errorf("%+v", w)
		}
	}
	if r.Summary != "advisory: claude, codex" {
		t.Error(r.Summary)
	}
}

// The doctor reports a busy or damaged store, and still runs all other checks.
func TestDoctorStore(t *testing.T) {
	t.Run("busy", func(t *testing.T) {
		d := newHouse(t, "claude")
		d.must(0, "init", "claude", "--yes")
		conn, err := sqlite3.OpenContext(t.Context(), filepath.Join(d.dir, ".lockkeeper/state.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.Exec("BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		found(t, d.examine(1), "store", false, "busy") // does not wait for the other process
	})
	t.Run("damaged", func(t *testing.T) {
		d := newHouse(t, "claude")
		d.must(0, "init", "claude", "--yes")
		os.Remove(filepath.Join(d.dir, ".lockkeeper/state.db-wal"))
		if err := os.WriteFile(filepath.Join(d.dir, ".lockkeeper/state.db"), []byte(strings.Repeat("not a database ", 1000)), 0o644); err != nil {
			t.Fatal(err)
		}
		r := d.examine(1)
		found(t, r, "store", false)
		found(t, r, "configuration", true)
		if w := way(t, r, "claude"); w.Level == view.Enforced || !w.Broken || !strings.Contains(w.Fact, "not tried without the store") {
			t.Errorf("%+v", w)
		}
	})
	t.Run("gone", func(t *testing.T) { // as after git clean, which also removes ignored files
		d := newHouse(t)
		d.must(0, "init")
		if err := errors.Join(os.RemoveAll(filepath.Join(d.dir, ".lockkeeper")), os.Remove(filepath.Join(d.dir, "lockkeeper.yaml"))); err != nil {
			t.Fatal(err)
		}
		d.must(1, "doctor")
		wantText(t, d.sees("restore .lockkeeper"), "its locks were removed")
	})
}

// The doctor reports leftovers of crashes, disabled checks, and an agent that runs without hooks.
func TestDoctorLeftAndSilent(t *testing.T) {
	d := newHouse(t, "claude")
	d.must(0, "init", "claude", "--yes")
	if err := os.MkdirAll(filepath.Join(d.dir, ".lockkeeper/stage/17-crashed"), 0o755); err != nil {
		t.Fatal(err)
	}
	found(t, d.examine(0), "leftovers", false, "lockkeeper gate recover")

	d.agreeing("y", 0, "off", "30m")
	found(t, d.examine(1), "sessions", false, "disabled the checks of interactive agents", "lockkeeper off --end")
	d.must(0, "off", "--end")

	path := ""
	for _, e := range d.env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			path, _, _ = strings.Cut(p, ":")
		}
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(path, "claude")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o755); err != nil { // a real binary, because a script would run under the name of its shell
		t.Fatal(err)
	}
	cmd := exec.Command(program, "60")
	cmd.Dir = d.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	r := d.examine(1)
	want := fmt.Sprintf("1 running claude process has not reported: restart process %d", cmd.Process.Pid)
	if len(r.Silent) != 1 || !strings.Contains(r.Summary, want) {
		if len(r.Silent) != 1 || r.Silent[0].TTY == "" { // the test itself may run in a terminal
			t.Errorf("%+v %s", r.Silent, r.Summary)
		}
	}
}

// status shows open sessions as a table, in one line, and live.
func TestStatusForPeople(t *testing.T) {
	d := newHouse(t, "claude")
	if out := d.must(0, "status", "--short"); out != "" {
		t.Errorf("want no output, got %q", out)
	}
	var watching sync.WaitGroup
	shown, err := os.Create(filepath.Join(t.TempDir(), "shown"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	watch := exec.Command(self)
	watch.Args = []string{"lockkeeper", "status", "--watch", "--json"}
	watch.Dir, watch.Env, watch.Stdout = d.dir, d.env, shown
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	watching.Go(func() { watch.Wait() })
	defer func() {
		watch.Process.Signal(os.Interrupt)
		watching.Wait()
		shown.Close()
	}()

	call := func(event, tool string) {
		t.Helper()
		input, err := json.Marshal(map[string]any{"session_id": "s", "cwd": d.dir, "hook_event_name": event, "tool_name": tool, "tool_use_id": "t", "prompt": "rate-limit login",
			"tool_input": map[string]string{"file_path": filepath.Join(d.dir, "user.rb")}})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Args = []string{"lockkeeper", "hook", "claude-code"}
		cmd.Dir, cmd.Env, cmd.Stdin = d.dir, d.env, bytes.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	call("UserPromptSubmit", "")
	call("PreToolUse", "Edit")
	out := d.must(0, "status")
	for _, word := range []string{"at work: 1 session", "claude-code", "user.rb", "rate-limit login"} {
		if !strings.Contains(out, word) {
			t.Errorf("status does not say %q:\n%s", word, out)
		}
	}
	if out := d.must(0, "status", "--short"); out != "1 at work · 1 held" {
		t.Errorf("in a line: %q", out)
	}
	for late := time.Now().Add(hung); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(shown.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"holds":["user.rb"]`) {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("the watch showed\n%s", text)
		}
	}
	if out := d.must(0, "status", "--short", "--dir", t.TempDir()); out != "" {
		t.Errorf("outside of a root: %q", out)
	}
}
