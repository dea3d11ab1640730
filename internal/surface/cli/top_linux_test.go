package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/project/projecttest"
)

// A muxer is a terminal emulator with windows, in which a person works in a project: tmux.
type muxer struct {
	t      *testing.T
	socket string
	env    []string
	dir    string
}

// newMuxer makes a project with a plan of three tasks, and two windows of 100 by 30. Every diff
// is reviewed. The agent of the task two says what the test writes into the returned directory,
// until the file go is there.
func newMuxer(t *testing.T) (m *muxer, shared string) {
	t.Helper()
	d, shared := newConsole(t), t.TempDir()
	program := filepath.Join(t.TempDir(), projecttest.Lockkeeper)
	self, err := os.Executable()
	projecttest.Must(t, err, os.Symlink(self, program))
	m = &muxer{t: t, socket: filepath.Join(t.TempDir(), "tmux"), dir: d.dir,
		env: append(d.env, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME="+t.TempDir(), "SHELL=/bin/sh", "PS1=$ ")}
	for name, text := range map[string]string{"one.txt": "old\n", "two.txt": "old\n", "three.txt": "old\n",
		"agent.sh": `case $(cat) in
*two.txt*) printf 'thinking \033[31mhard\033[2J 宽\n'; until test -e ` + shared + `/more; do sleep 0.02; done; echo 'the second line'; until test -e ` + shared + `/go; do sleep 0.02; done; echo new >two.txt;;
*three.txt*) echo new >three.txt;;
*) echo new >one.txt;;
esac
`,
		"lockkeeper.yaml": "agent: {name: command, command: [sh, " + d.dir + "/agent.sh], read: [" + d.dir + "/agent.sh], caches: [" + shared + "]}\n" +
			"gate: {allowed_write_paths: [.]}\nrun: {verify: off, review: all, test_command: 'true'}\n",
		"tasks.yaml": "tasks:\n  - {name: one, prompt: Change it., writes: [one.txt]}\n  - {name: two, prompt: Change it., writes: [two.txt]}\n" +
			"  - {name: three, prompt: Change it., writes: [three.txt], after: [two]}\n"} {
		projecttest.Must(t, os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600))
	}
	m.tmux("new-session", "-d", "-s", "run", "-x", "100", "-y", "30", "sh")
	t.Cleanup(func() { m.tmux("kill-server") })
	m.tmux("new-session", "-d", "-s", "top", "-x", "100", "-y", "30", "sh")
	return m, shared
}

func (m *muxer) tmux(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-f", "/dev/null", "-S", m.socket}, args...)...)
	cmd.Env, cmd.Dir = m.env, m.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (m *muxer) types(window string, keys ...string) {
	m.t.Helper()
	m.tmux(append([]string{"send-keys", "-t", window}, keys...)...)
}

// sees waits until a window shows text that matches, and returns all of it.
func (m *muxer) sees(window, pattern string) string {
	m.t.Helper()
	want := regexp.MustCompile(pattern)
	for late := time.Now().Add(hung); ; {
		shown := m.tmux("capture-pane", "-p", "-t", window, "-S", "-100")
		if want.MatchString(shown) {
			return shown
		}
		if time.Now().After(late) {
			m.t.Fatalf("the window %s never showed %q:\n%s", window, pattern, shown)
		}
		time.Sleep(20 * time.Millisecond) // tmux has no event for this
	}
}

func (m *muxer) touch(path string) {
	m.t.Helper()
	projecttest.Must(m.t, os.WriteFile(path, nil, 0o600))
}

// A run shows its slots with the last lines of the agents, and the log of one as it grows. Another
// process shows the same, and answers a decision. Ctrl-C finishes the agent; then the terminal has
// the outcome.
//
// shows: PL-94
func TestScreenOfARun(t *testing.T) {
	m, shared := newMuxer(t)
	m.types("run", "lockkeeper run --plan tasks.yaml --no-ui", "Enter")
	m.sees("run", `(?s)\[Now\].*agent-\d.*▶ two +apply .*thinking .*hard.*宽`)

	m.types("top", "lockkeeper top; echo closed with $?", "Enter")
	m.sees("top", `(?s)\[Now\].*▶ two.*Needs you \(1\)`)
	m.types("top", "g", "d")
	m.sees("top", `(?s)\[Decide 1\].*▸ \+tasks/one`)
	m.types("top", "Enter")
	m.sees("top", `(?s)-old\s+\+new`)
	m.types("top", "a")
	m.sees("top", `approve: it lands as it was shown\? \[y/N\]`)
	m.types("top", "y")
	m.sees("top", `review \+tasks/one is approved`)
	m.sees("run", `one landed: 1 file`)

	m.types("top", "g", "b")
	m.sees("top", `(?s)one +■.*two +▶ applying \d+s.*three +. waits for two`)
	m.types("top", "q")
	m.sees("top", `closed with 0`)

	m.types("run", "Enter") // the first row is the slot of the agent
	m.sees("run", `(?s)\+tasks/two  running, apply.*following ──.*thinking .*hard.*宽`)
	m.touch(filepath.Join(shared, "more"))
	m.sees("run", `the second line`)
	m.tmux("resize-window", "-t", "run", "-x", "60", "-y", "12")
	for line := range strings.Lines(m.sees("run", `(?s)\A\[Now\][^\n]{0,54}\n.*the second line`)) {
		if len([]rune(line)) > 61 {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
	m.types("run", "Escape")
	m.sees("run", `(?s)\[Now\].*Slots`)
	m.types("run", "q")
	m.sees("run", `(?s)\A\[Now\].*Slots.*Close the screen\? The run continues here and prints lines`)
	m.types("run", "n")
	m.types("run", "C-c")
	m.sees("run", `stopping: waiting for \+tasks/two apply; press Ct`)
	m.touch(filepath.Join(shared, "go"))
	m.sees("run", `next: lockkeeper run --plan tasks.yaml\s+\$`)
	m.types("run", "echo ended with $?", "Enter")
	shown := m.sees("run", `ended with 130`)
	for _, want := range []string{"one landed: 1 file", "stopping: waiting for", "tasks: 1 of 3 tasks complete", "next: lockkeeper run --plan tasks.yaml"} {
		if !strings.Contains(shown, want) {
			t.Errorf("after the screen the terminal does not show %q:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "[Now]") {
		t.Errorf("the screen is still there:\n%s", shown)
	}
}

// A person who closes the screen of a run gets its lines, and the run continues.
func TestClosedScreenOfARun(t *testing.T) {
	m, shared := newMuxer(t)
	m.types("run", "lockkeeper run --plan tasks.yaml --only two --no-ui; echo ended with $?", "Enter")
	m.sees("run", `(?s)\[Now\].*▶ two`)
	m.types("run", "q", "y")
	m.touch(filepath.Join(shared, "more"))
	m.touch(filepath.Join(shared, "go"))
	shown := m.sees("run", `ended with 0`)
	if !strings.Contains(shown, "+tasks/two apply done: 1 file") || strings.Contains(shown, "[Now]") {
		t.Errorf("it shows:\n%s", shown)
	}
}

// Without a terminal, top says what to use instead.
func TestTopNeedsATerminal(t *testing.T) {
	d := newConsole(t)
	d.must(1, "top")
	d.sees("lockkeeper status --watch")
}
