//go:build agents

package agents_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/agent/scriptedapi"
	"lockkeeper/internal/flow/sample"
)

// shown is the result of a demonstration.
type shown struct {
	out, err string
	code     int
	temp     string // its temporary directory
}

// told is the JSON output of a demonstration.
type told struct {
	Landed     int      `json:"writes_landed"`
	Refused    int      `json:"writes_refused"`
	Collisions []string `json:"collisions"`
	Files      int      `json:"files_changed"`
	Batches    int      `json:"batches"`
	USD        float64  `json:"usd"`
	Dir        string   `json:"dir"`
	Error      string   `json:"error"`
	Message    string   `json:"message"`
}

// walker returns a command that runs the program with Claude Code in PATH and additional
// environment variables.
func (s *stage) walker(t *testing.T, more []string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.root, "path")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.program, filepath.Join(path, "claude")); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(append(s.environment(), "PATH="+path+":"+os.Getenv("PATH")), more...)
	return cmd
}

// demo runs a demonstration to its end and checks that only files are left. Its temporary
// directory has a short name, because sockets are below it.
func (s *stage) demo(t *testing.T, more []string, args ...string) shown {
	t.Helper()
	temp, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(temp); err != nil {
			t.Error(err)
		}
	})
	cmd := s.walker(t, append([]string{"TMPDIR=" + temp}, more...), append([]string{"demo"}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if s.stopAt != "" {
		cmd.Stdout = &stopper{text: &out, at: s.stopAt, stop: func() error { return cmd.Process.Signal(os.Interrupt) }}
	}
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if left := running(t, s.mark); len(left) > 0 {
		t.Errorf("still running: %s", strings.Join(left, ", "))
	}
	return shown{out.String(), said.String(), cmd.ProcessState.ExitCode(), temp}
}

// A stopper interrupts its writer once, at certain words.
type stopper struct {
	text *bytes.Buffer
	at   string
	stop func() error
}

func (s *stopper) Write(p []byte) (int, error) {
	n, _ := s.text.Write(p) // never fails
	if s.at == "" || !strings.Contains(s.text.String(), s.at) {
		return n, nil
	}
	s.at = ""
	return n, s.stop()
}

// demoJSON runs a demonstration that must succeed and keep its files.
func (s *stage) demoJSON(t *testing.T, args ...string) (d told) {
	t.Helper()
	ran := s.demo(t, nil, append([]string{"--keep", "--json"}, args...)...)
	if ran.code != 0 || ran.err != "" {
		t.Fatalf("exit code %d: %s", ran.code, ran.err)
	}
	if err := json.Unmarshal([]byte(ran.out), &d); err != nil {
		t.Fatalf("%v: %s", err, ran.out)
	}
	return d
}

// in runs a command in a directory. The command must succeed.
func in(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// signedIn creates the home of a person who has used Claude Code before.
func (s *stage) signedIn(t *testing.T) (settings string) {
	t.Helper()
	settings = `{"hasCompletedOnboarding":true,"userID":"person"}`
	write(t, filepath.Join(s.home, ".claude/settings.json"), "{}\n")
	write(t, filepath.Join(s.home, ".claude.json"), settings)
	return settings
}

// application returns the files of a codebase, except those of tools.
func application(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for path, e := range readTree(t, dir) {
		if e.mode.IsRegular() && !strings.HasPrefix(path, ".") {
			files[path] = e.mode.String() + " " + e.content
		}
	}
	return files
}

// In the demonstration, the real Claude Code produces the same bytes as the scripted agents.
// All controllers are analyzed, planned, changed, tested, verified and landed, each batch as
// one commit, and writes without a lock are refused. Only lockkeeper.yaml differs, which names
// the agent. It works for a person who is signed in, and leaves that person's own Claude Code
// directory unchanged.
//
// shows: GP-5 PL-27 PL-68 SW-75
func TestDemoWithClaude(t *testing.T) {
	machine(t)
	s := newStage(t, func(string) []scriptedapi.Play { return samplePlays(t) })
	settings := s.signedIn(t)
	own := readTree(t, filepath.Join(s.home, ".claude"))
	paid := s.demoJSON(t, "--claude", "--yes", "--budget", "50")
	free := s.demoJSON(t, "--fast")
	for name, d := range map[string]told{"claude": paid, "scripted": free} {
		if d.Landed != 21 || d.Refused != 1 || len(d.Collisions) > 0 || d.Files != 16 || d.Batches != 10 || d.USD > 0 != (name == "claude") {
			t.Errorf("%s: %+v", name, d)
		}
		in(t, d.Dir, "sh", "-c", sample.Test+" && "+sample.CI)
		if commits := strings.Fields(in(t, d.Dir, "git", "log", "--format=%H")); len(commits) != 1+d.Batches {
			t.Errorf("%s: %d commits of %d batches", name, len(commits), d.Batches)
		}
		if dirty := in(t, d.Dir, "git", "status", "--porcelain"); dirty != "" {
			t.Errorf("%s: not in any commit:\n%s", name, dirty)
		}
	}
	same := application(t, free.Dir)
	for path, content := range application(t, paid.Dir) {
		if same[path] != content && path != "lockkeeper.yaml" {
			t.Errorf("%s is\n%s\nand with scripted agents\n%s", path, content, same[path])
		}
		delete(same, path)
	}
	if len(same) > 0 {
		t.Errorf("with scripted agents there are also %v", same)
	}
	subjects := func(d told) []string {
		list := strings.Split(in(t, d.Dir, "git", "log", "--format=%s"), "\n")
		slices.Sort(list) // landings have no fixed order
		return list
	}
	if a, b := subjects(paid), subjects(free); !slices.Equal(a, b) {
		t.Errorf("commits\n%q\nand with scripted agents\n%q", a, b)
	}
	report := read(t, filepath.Join(filepath.Dir(paid.Dir), "report.md"))
	if cost := regexp.MustCompile(`(?m)^\$(\d+\.\d\d), \d+ tokens, (\d+) calls, of which 0 failed\.$`).FindStringSubmatch(report); cost == nil || cost[1] == "0.00" || cost[2] != "38" {
		t.Errorf("what it cost is not told: %q\n%s", cost, report)
	}
	if now := readTree(t, filepath.Join(s.home, ".claude")); !maps.Equal(now, own) || read(t, filepath.Join(s.home, ".claude.json")) != settings {
		t.Errorf("its own directory was %v and is %v, and the settings are %s", own, now, read(t, filepath.Join(s.home, ".claude.json")))
	}
}

// If the budget is used up, the demonstration ends with its own exit code. The paid results are
// kept, and the printed command resumes there. Claude Code obeys the settings in the directory
// that its user names, and leaves nothing there.
func TestDemoBudget(t *testing.T) {
	machine(t)
	t.Parallel()
	s := newStage(t, func(string) []scriptedapi.Play { return samplePlays(t) })
	config := filepath.Join(s.root, "config")
	write(t, filepath.Join(config, "settings.json"), "{}\n")
	write(t, filepath.Join(config, "CLAUDE.md"), "The bird of the house is a heron.\n")
	write(t, filepath.Join(config, "rules/birds.md"), "A second bird is a bittern.\n")
	own := readTree(t, config)
	d := s.demo(t, []string{"CLAUDE_CONFIG_DIR=" + config}, "--claude", "--yes", "--budget", "0.01", "--no-ui")
	if d.code != 7 {
		t.Errorf("exit code %d", d.code)
	}
	for _, want := range []string{`the budget is used up: \$0\.\d\d of \$0\.01`, `writes landed 0, writes refused 0, collisions 0`, `That took \S+ and cost \$0\.\d\d, in 1 call of claude`} {
		if !regexp.MustCompile(want).MatchString(d.out) {
			t.Errorf("it does not say %s:\n%s", want, d.out)
		}
	}
	if now := readTree(t, config); !maps.Equal(now, own) {
		t.Errorf("its own directory was %v and is %v", own, now)
	}
	asked := ""
	for _, r := range s.api.Requests() {
		asked += string(r.Body)
	}
	if !strings.Contains(asked, "is a heron") || !strings.Contains(asked, "is a bittern") {
		t.Errorf("it does not know its settings: %.3000s", asked)
	}
	said := regexp.MustCompile(`^lockkeeper: budget: used up: 0 controllers complete, \$0\.\d\d of \$0\.01 spent\nnext: cd (\S+) && (XDG_STATE_HOME=\S+) lockkeeper run --auto-decide '(\S+)' --budget 1\n$`).FindStringSubmatch(d.err)
	if said == nil {
		t.Fatalf("it does not say what is next:\n%s", d.err)
	}
	goOn := s.walker(t, []string{said[2]}, "run", "--auto-decide", said[3], "--budget", "1", "--dry-run")
	goOn.Dir = said[1]
	out, err := goOn.CombinedOutput()
	if spent := regexp.MustCompile(`\$(\d\.\d\d) spent so far`).FindSubmatch(out); err != nil || spent == nil || string(spent[1]) == "0.00" {
		t.Errorf("what was paid for does not count: %v\n%s", err, out)
	}
}

// If a person stops the demonstration, the paid results are kept and the message says how to
// resume.
func TestDemoStopped(t *testing.T) {
	machine(t)
	t.Parallel()
	s := newStage(t, func(string) []scriptedapi.Play { return samplePlays(t) })
	s.stopAt = " extract started"
	d := s.demo(t, nil, "--claude", "--yes", "--no-ui")
	said := regexp.MustCompile(`(?m)^next: cd (\S+) && XDG_STATE_HOME=\S+ lockkeeper run --auto-decide '\S+' --budget 5$`).FindStringSubmatch(d.err)
	if d.code == 0 || said == nil {
		t.Fatalf("exit code %d:\n%s\n%s", d.code, d.out, d.err)
	}
	if done, err := filepath.Glob(filepath.Join(said[1], ".pipeline/*/*/analysis.json")); err != nil || len(done) == 0 {
		t.Errorf("what was paid for is gone: %v", err)
	}
}

// If the API refuses Claude Code, the demonstration ends with the reason. If nothing was paid,
// it leaves no files behind. Otherwise it can be resumed.
func TestDemoRefused(t *testing.T) {
	machine(t)
	refuse := scriptedapi.Play{Steps: []scriptedapi.Step{{Fail: &scriptedapi.Fail{Status: 401, Type: "authentication_error", Message: "invalid x-api-key"}}}}
	for name, test := range map[string]struct {
		first   int // number of plays that succeed first
		message string
	}{
		"at once": {0, `^4 items failed, first \S+: claude: refused: Invalid API key[^;]*; 0 controllers complete, \$0\.00 of \$5 spent; next: check the agent's login, key and model, then retry$`},
		"later":   {1, `^4 items failed, first \S+: claude: refused: Invalid API key[^;]*; its output: [^;]+; 0 controllers complete, \$0\.\d\d of \$5 spent; next: cd \S+ && XDG_STATE_HOME=\S+ lockkeeper run --auto-decide '\S+' --budget 5 --retry$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(string) []scriptedapi.Play { return append(samplePlays(t)[:test.first:test.first], refuse) })
			d := s.demo(t, nil, "--claude", "--yes", "--json")
			var r told
			if err := json.Unmarshal([]byte(d.out), &r); err != nil || d.code != 1 || r.Error != "failed" || r.Landed != 0 || d.err != "" {
				t.Errorf("exit code %d, %v, %s\n%s", d.code, err, d.err, d.out)
			}
			if !regexp.MustCompile(test.message).MatchString(r.Message) {
				t.Errorf("it says %q", r.Message)
			}
			left, paid := readTree(t, d.temp), test.first > 0
			if r.USD > 0 != paid || r.Dir != "" != paid || len(left) > 0 != paid {
				t.Errorf("it cost $%g, and is in %q, where there are %d files", r.USD, r.Dir, len(left))
			}
		})
	}
}
