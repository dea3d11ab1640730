package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
)

// Three sessions, whose hooks are active, and a person edit, stage, commit, amend, stash, pop and
// switch branches in one work tree, in random order. No commit has a change of a file that another
// one holds at that moment, and no written line is lost.
//
// shows: CF-15 GP-5
func TestCommitsOfSeveral(t *testing.T) {
	t.Parallel()
	w := newCrowd(t)
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("LOCKKEEPER_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("LOCKKEEPER_SEED: %v", err)
		}
	}
	t.Logf("repeat with LOCKKEEPER_SEED=%d", seed)
	w.draw = rand.New(rand.NewPCG(seed, 0))
	least := rounds()
	for round := 0; round < least || w.isMissing() != "" && round < 20*least; round++ {
		a := w.actors[w.draw.IntN(len(w.actors))]
		w.round(round, a)
		if t.Failed() {
			t.Fatalf("round %d, by %s", round, a.name)
		}
	}
	w.nothingIsLost()
	t.Log(w.count)
	if never := w.isMissing(); never != "" {
		t.Errorf("never: %s", never)
	}
}

// isMissing returns an act that has not happened yet, or "". Some acts are rare, so the test
// continues until none is missing.
func (w *crowd) isMissing() string {
	for _, happened := range []string{"commits of sessions", "commits of the person", "refused", "stopped by git's hook", "lockkeeper commit"} {
		if w.count[happened] == 0 {
			return happened
		}
	}
	return ""
}

// rounds returns how many acts the test draws.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE")); err == nil && n > 1 {
		return max(10_000, 200*n)
	}
	return 200
}

// A crowd is a work tree with its actors.
type crowd struct {
	*testing.T
	dir    string
	env    []string
	app    *project.Project
	actors []*actor
	draw   *rand.Rand
	known  map[string]bool // commits that were checked
	lines  map[string]bool // all lines that were written
	count  map[string]int
	said   string // what the last hook printed
}

// An actor is a shell that runs the hooks and commands of a session, or a person's shell.
type actor struct {
	name  string // empty: the person
	half  string // a file with an unfinished edit
	calls int
	in    io.Writer
	out   *bufio.Reader
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	w := &crowd{T: t, dir: filepath.Join(t.TempDir(), "repo"), known: map[string]bool{}, lines: map[string]bool{}, count: map[string]int{}}
	state := t.TempDir()
	w.env = append(gittest.Env(), "XDG_STATE_HOME="+state, "GORACE=atexit_sleep_ms=0")
	for i := range 6 {
		w.write(fmt.Sprintf("file%d", i), fmt.Sprintf("first %d\n", i))
	}
	w.write(".gitattributes", "* merge=union\n") // so that no stash conflicts
	w.write(".gitignore", "lockkeeper.yaml\n")
	gittest.Run(t, w.dir, "init", "-q", "-b", "main")
	gittest.Run(t, w.dir, "add", "-A")
	gittest.Run(t, w.dir, "commit", "-qm", "first")
	gittest.Run(t, w.dir, "branch", "side")
	for _, name := range []string{"A", "B", "C", ""} {
		w.actors = append(w.actors, w.enter(name))
	}
	person := w.actors[3]
	if code, said := w.run(person, "lockkeeper init --git-hook=held"); code != 0 {
		t.Fatal(said)
	}
	a, err := project.Open(t.Context(), project.Settings{Dir: w.dir, Env: func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	w.app = a
	for _, hash := range strings.Fields(w.git("rev-list", "--all")) {
		w.known[hash] = true
	}
	return w
}

// enter starts the shell of an actor. It has no terminal, so nobody can be asked.
func (w *crowd) enter(name string) *actor {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "bash")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = w.dir, w.env, &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		in.Close()
		cmd.Wait() // the end of its input ends it
	})
	return &actor{name: name, in: in, out: bufio.NewReader(out)}
}

// run runs a command in the shell of an actor.
func (w *crowd) run(a *actor, command string) (code int, said string) {
	w.Helper()
	log := filepath.Join(w.dir, ".git", "said")
	fmt.Fprintf(a.in, "{ %s\n} >%s 2>&1 </dev/null; echo $?\n", command, log)
	line, err := a.out.ReadString('\n')
	if err != nil {
		w.Fatal(err)
	}
	code, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		w.Fatalf("%q: %v", line, err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		w.Fatal(err)
	}
	return code, string(text)
}

// hook reports an event of a session, and returns whether it may continue.
func (w *crowd) hook(a *actor, event, tool string, input map[string]any) bool {
	w.Helper()
	call, err := json.Marshal(map[string]any{"session_id": a.name, "cwd": w.dir, "hook_event_name": event, "tool_name": tool,
		"tool_use_id": fmt.Sprint(tool, a.calls), "tool_input": input})
	if err != nil {
		w.Fatal(err)
	}
	file := filepath.Join(w.dir, ".git", "call")
	if err := os.WriteFile(file, call, 0o600); err != nil {
		w.Fatal(err)
	}
	code, said := w.run(a, "lockkeeper hook claude-code <"+file)
	w.said = said
	if code != 0 && code != 2 || strings.Contains(said, "cannot check the locks") {
		w.Errorf("%s %s %s: %d %s", a.name, event, tool, code, said)
	}
	return code == 0 && !strings.Contains(said, `"permissionDecision":"deny"`)
}

func (w *crowd) git(args ...string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "git", args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}

func (w *crowd) write(name, text string) {
	w.Helper()
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

// grow adds a line to a file that exists, or creates it.
func (w *crowd) grow(name, line string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	w.lines[line] = true
	w.write(name, string(text)+line+"\n")
}

// holders returns the session that holds each file.
func (w *crowd) holders() map[string]string {
	w.Helper()
	held := map[string]string{}
	list, err := w.app.Locks.Requests(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, g := range list {
		for _, p := range g.WritePaths {
			held[p] = g.Metadata["session"]
		}
	}
	return held
}

// round lets an actor do something, and checks the commits that it made.
func (w *crowd) round(n int, a *actor) {
	w.Helper()
	a.calls++
	held, before := w.holders(), strings.TrimSpace(w.git("rev-parse", "HEAD"))
	file := fmt.Sprintf("file%d", w.draw.IntN(8)) // two of them are new
	acts := []string{"git add -A", "git add " + file, "git commit -qm x", "git commit -qam x", "git commit -qm x " + file, "git add . && git commit -qm x",
		"git commit -q --amend --no-edit", "git stash -q", "git stash pop -q", "git checkout -q side", "git checkout -q main"}
	if a.name != "" {
		acts = append(acts, "lockkeeper commit -m x", "lockkeeper commit -m x "+file)
	}
	act := acts[w.draw.IntN(len(acts))]
	switch kind := w.draw.IntN(10); {
	case a.name == "" && kind < 4:
		if held[file] == "" { // where a session works, its content is not the person's to commit
			w.grow(file, fmt.Sprint("person ", n))
		}
		return
	case kind < 4 && a.half == "":
		if w.hook(a, "PreToolUse", "Edit", map[string]any{"file_path": filepath.Join(w.dir, file), "old_string": "a", "new_string": "b"}) {
			a.half = file
			w.grow(file, fmt.Sprint(a.name, " begins ", n))
		} else {
			w.count["refused"]++
		}
		return
	case kind < 5 && a.half != "":
		w.grow(a.half, fmt.Sprint(a.name, " ends ", n))
		w.hook(a, "PostToolUse", "Edit", map[string]any{"file_path": filepath.Join(w.dir, a.half)})
		a.half = ""
		return
	case kind < 6 && a.name != "" && a.half == "":
		w.hook(a, "Stop", "", nil)
		return
	}
	w.command(a, act)
	w.check(a, act, before, held)
}

// command lets an actor run a command, if its hooks allow it.
func (w *crowd) command(a *actor, act string) {
	w.Helper()
	input := map[string]any{"command": act}
	if a.name != "" && !w.hook(a, "PreToolUse", "Bash", input) {
		w.count["refused"]++
		return
	}
	code, said := w.run(a, act)
	switch {
	case strings.Contains(said, "changed path") || strings.Contains(said, "no lock covers"):
		w.count["stopped by git's hook"]++
	case code == 0 && strings.HasPrefix(act, "lockkeeper"):
		w.count["lockkeeper commit"]++
	}
	if strings.Contains(said, "internal error") || strings.Contains(said, "panic") {
		w.Errorf("%s: %s", act, said)
	}
	if a.name != "" {
		w.hook(a, "PostToolUse", "Bash", input)
	}
}

// check checks the new commits on all branches: none has a change of a file that another session
// held.
func (w *crowd) check(a *actor, act, before string, held map[string]string) {
	w.Helper()
	for _, hash := range strings.Fields(w.git("rev-list", "--branches")) {
		if w.known[hash] {
			continue
		}
		w.known[hash] = true
		if a.name == "" {
			w.count["commits of the person"]++
		} else {
			w.count["commits of sessions"]++
		}
		for _, path := range strings.Fields(w.git("diff", "--name-only", before, hash)) {
			if by := held[path]; by != "" && by != a.name {
				w.Errorf("%q by %q committed %s, which %s held:\n%s", act, a.name, path, by, w.git("show", hash))
			}
		}
	}
}

// nothingIsLost checks that no line is lost. Each is in the work tree, in the history of a branch
// or of HEAD, in the stash, or on the rescue shelf.
func (w *crowd) nothingIsLost() {
	w.Helper()
	left := maps.Clone(w.lines)
	find := func(text string) {
		for line := range strings.Lines(text) {
			delete(left, strings.TrimLeft(strings.TrimSpace(line), "+- "))
		}
	}
	for i := range 8 {
		text, err := os.ReadFile(filepath.Join(w.dir, fmt.Sprint("file", i)))
		if err != nil && !os.IsNotExist(err) {
			w.Fatal(err)
		}
		find(string(text))
	}
	find(w.git("log", "-p", "--all", "--reflog", "-m", "--format="))
	find(w.git("diff", "--cached"))
	kept, err := session.Rescued(w.Context(), w.app)
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range kept {
		body, err := w.app.Shelf().Content(e.ID)
		if err != nil {
			w.Fatal(err)
		}
		text, err := io.ReadAll(body)
		body.Close()
		if err != nil {
			w.Fatal(err)
		}
		find(string(text))
	}
	if len(left) > 0 {
		w.Errorf("lost: %q", slices.Sorted(maps.Keys(left)))
	}
}
