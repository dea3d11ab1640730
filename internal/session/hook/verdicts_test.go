package hook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/project"
	"lockkeeper/internal/session/hook"
)

// A verdict is one line of testdata/verdicts.txt.
type verdict struct {
	want    string // allowed, kept or refused
	runs    bool   // the command is also run
	command string
}

func readVerdicts(t *testing.T) (list []verdict) {
	t.Helper()
	text, err := os.ReadFile("testdata/verdicts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		want, command, _ := strings.Cut(line, " ")
		name, unrun := strings.CutSuffix(want, "*")
		v := verdict{name, !unrun, strings.TrimSpace(command)}
		if !slices.Contains([]string{"allowed", "kept", "refused"}, v.want) || v.command == "" {
			t.Fatalf("testdata/verdicts.txt: %q", line)
		}
		list = append(list, v)
	}
	return list
}

// workbench is a directory with a repository in which otter holds files, as testdata/verdicts.sh
// makes it.
type workbench struct {
	t   *testing.T
	dir string
	env map[string]string
}

// memoryDir returns a temporary directory in memory where the system has one. The commands make
// thousands of files, which need not reach a disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "verdicts-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newWorkbench(t *testing.T) workbench {
	t.Helper()
	w := workbench{t, memoryDir(t), map[string]string{"XDG_STATE_HOME": memoryDir(t), "HOME": memoryDir(t), "PATH": os.Getenv("PATH")}}
	script, err := filepath.Abs("testdata/verdicts.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", script)
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return w
}

func (w workbench) repo() string { return filepath.Join(w.dir, "repo") }

// enrolled makes the repository a codebase in which otter holds its files.
func (w workbench) enrolled() workbench {
	w.t.Helper()
	if _, err := project.Init(w.t.Context(), project.Settings{Dir: w.repo(), Env: w.lookup}, project.InitOptions{}); err != nil {
		w.t.Fatal(err)
	}
	for _, f := range heldFiles() {
		before, err := os.ReadFile(filepath.Join(w.repo(), f))
		if err != nil {
			w.t.Fatal(err)
		}
		w.edits("otter", f, string(before))
	}
	return w
}

func (w workbench) lookup(name string) (string, bool) {
	value, known := w.env[name]
	return value, known
}

func (w workbench) call(session, event, tool, id string, input map[string]any) said {
	w.t.Helper()
	call, err := json.Marshal(map[string]any{"session_id": session, "hook_event_name": event, "tool_name": tool, "tool_use_id": id, "cwd": w.repo(), "tool_input": input, "reason": "other"})
	if err != nil {
		w.t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := hook.Run(w.t.Context(), "claude-code", hook.Process{In: bytes.NewReader(call), Out: &out, Err: &errs, Env: w.lookup})
	return heard(code, out.String(), errs.String())
}

func (w workbench) edits(session, name, text string) {
	w.t.Helper()
	input := map[string]any{"file_path": filepath.Join(w.repo(), name)}
	if r := w.call(session, "PreToolUse", "Edit", "e", input); r.code != 0 {
		w.t.Fatal(r.all())
	}
	if err := os.WriteFile(filepath.Join(w.repo(), name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.call(session, "PostToolUse", "Edit", "e", input)
}

// snapshots lists the copies of uncommitted files.
func (w workbench) snapshots() int {
	list, err := os.ReadDir(filepath.Join(w.repo(), ".lockkeeper/snapshots"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return len(list)
}

// judge returns the verdict on a command of a session that has own.txt.
func (w workbench) judge(session, command string) (verdict, why string) {
	w.t.Helper()
	before := w.snapshots()
	input := map[string]any{"command": command}
	r := w.call(session, "PreToolUse", "Bash", "b", input)
	if r.code == 2 {
		return "refused", r.err
	}
	if r.code != 0 {
		w.t.Fatal(command, r.all())
	}
	verdict = "allowed"
	if w.snapshots() > before {
		verdict = "kept"
	}
	w.call(session, "PostToolUse", "Bash", "b", input)
	return verdict, ""
}

// copied returns a copy of the workbench in which a command may do anything.
func (w workbench) copied(to string) workbench {
	w.t.Helper()
	link := `printf 'gitdir: %s/repo/.git/worktrees/tree\n' "$2" >"$2/repo/tree/.git"; printf '%s/repo/tree/.git\n' "$2" >"$2/repo/.git/worktrees/tree/gitdir"`
	out, err := exec.CommandContext(w.t.Context(), "bash", "-ec", `rm -rf -- "$2"; cp -a -- "$1" "$2"; `+link, "sh", w.dir, to).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	return workbench{w.t, to, w.env}
}

// listing returns the names, sizes and times of all files.
func (w workbench) listing() string {
	w.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(w.dir, func(file string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintln(&b, file, info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

// state returns what belongs to others: by name, the content of their files, in the tree and in
// the index, the branch, its history, and the stash.
func (w workbench) state() map[string]string {
	w.t.Helper()
	state := map[string]string{}
	for _, f := range append(heldFiles(), "notes.txt", "a.log") {
		text, err := os.ReadFile(filepath.Join(w.repo(), f))
		state[f] = fmt.Sprint(string(text), err != nil)
	}
	git := func(name string, args ...string) {
		out, err := exec.CommandContext(w.t.Context(), "git", append([]string{"-C", w.repo()}, args...)...).CombinedOutput()
		state[name] = fmt.Sprint(string(out), err != nil)
	}
	git("branch", "symbolic-ref", "HEAD")
	git("history", "merge-base", "--is-ancestor", "start", "HEAD")
	out, err := exec.CommandContext(w.t.Context(), "bash", "-c", `git -C "$1" stash list --format=%H | grep -c "$(git -C "$1" rev-parse stashed)"`, "sh", w.repo()).CombinedOutput()
	state["older stash"] = fmt.Sprint(string(out), err != nil)
	git("index", append([]string{"ls-files", "-s"}, heldFiles()...)...)
	git("commits", append([]string{"log", "--format=%h", "HEAD", "--"}, heldFiles()...)...)
	return state
}

// heldFiles lists the files that otter holds: some have its half-done edits, others it has not changed yet.
func heldFiles() []string {
	return []string{"held.txt", "src/held.py", "src/held.go", "src/held.ts", "docs/held.md"}
}

// Each command of testdata/verdicts.txt gets its verdict, and real bash shows that the verdict is
// right: what is allowed changes nothing of others, and what is refused does.
//
// shows: GP-5 CF-15
func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("runs hundreds of commands")
	}
	w := newWorkbench(t)
	template := w.copied(memoryDir(t) + "/template")
	w.enrolled()
	w.call("B", "PostToolUse", "Read", "r", map[string]any{"file_path": filepath.Join(w.repo(), "own.txt")})
	w.edits("B", "own.txt", "mine\n")
	before := template.state()
	run := template.copied(memoryDir(t) + "/run")
	listing := run.listing()
	harmless, falsely, harmful, passed := 0, 0, 0, 0
	for _, v := range readVerdicts(t) {
		got, why := w.judge("B", v.command)
		if v.want == "refused" {
			if harmful++; got != "refused" {
				passed++
			}
		} else if harmless++; got == "refused" {
			falsely++
		}
		if got != v.want {
			t.Errorf("%s, want %s: %s\n\t%s", got, v.want, v.command, strings.ReplaceAll(why, "\n", "\n\t"))
		}
		if !v.runs {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "timeout", "20", "bash", "-c", v.command)
		cmd.Dir = run.repo()
		cmd.Env = append(os.Environ(), "HOME="+w.env["HOME"], "GIT_CONFIG_GLOBAL="+filepath.Join(w.env["HOME"], "gitconfig"), "GIT_EDITOR=true", "GIT_TERMINAL_PROMPT=0", "PAGER=cat", "GIT_OPTIONAL_LOCKS=0", "GOFLAGS=", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		var changed []string
		if now := run.listing(); now != listing { // otherwise nothing changed
			for name, text := range run.state() {
				if before[name] != text {
					changed = append(changed, name)
				}
			}
			run = template.copied(run.dir)
			listing = run.listing()
		}
		slices.Sort(changed)
		switch {
		case cmd.ProcessState.ExitCode() == 127:
			t.Logf("not run, a program is missing: %s", v.command)
		case v.want == "refused" && len(changed) == 0:
			t.Errorf("it harms nothing: %s (%v)\n\t%.300s", v.command, err, out)
		case v.want != "refused" && len(changed) > 0:
			t.Errorf("it changes %v of others: %s (%v)\n\t%.300s", changed, v.command, err, out)
		}
	}
	line := fmt.Sprintf("%d harmless commands, %d refused; %d harmful commands, %d passed", harmless, falsely, harmful, passed)
	if harmless+harmful < 900 || falsely*100 > harmless || passed > 0 {
		t.Error(line)
	}
	if docs, err := os.ReadFile("../../../docs/hooks.md"); err != nil || !bytes.Contains(docs, []byte(line)) {
		t.Errorf("docs/hooks.md does not say %q: %v", line, err)
	}
}
