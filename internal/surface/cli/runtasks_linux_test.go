package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
)

// planConsole returns a terminal in a codebase with a plan of three tasks. Tests wait for the file go in the returned
// directory if a task changed something, and fail if two.txt changed.
func planConsole(t *testing.T) (d *console, shared string) {
	t.Helper()
	d, shared = newConsole(t), t.TempDir()
	d.env = append(d.env, "PATH="+os.Getenv("PATH"))
	test := fmt.Sprintf(`grep -q new *.txt || exit 0; until test -e %s/go; do sleep 0.05; done; ! grep -q new two.txt || { printf "1\tis not 2\n"; exit 1; }`, shared)
	files := map[string]string{"one.txt": "old\n", "two.txt": "old\n", "three.txt": "old\n",
		"lockkeeper.yaml": "agent: {name: command, command: [sh, -c, 'echo new >$(grep -o \"[a-z]*[.]txt\" | head -1)'], caches: [" + shared + "]}\n" +
			"gate: {allowed_write_paths: [.]}\nmax_test_concurrency: 1\nmax_fix_attempts: 0\nrun: {verify: off, test_command: '" + test + "'}\n",
		"tasks.yaml": "tasks:\n  - {name: one, prompt: Change it., writes: [one.txt]}\n  - {name: two, prompt: Change it., writes: [two.txt]}\n" +
			"  - {name: three, prompt: Change it., writes: [three.txt], after: [one]}\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d, shared
}

// seesLine waits until the terminal shows a line that matches.
func (d *console) seesLine(pattern string) {
	d.t.Helper()
	want := regexp.MustCompile(pattern)
	late := time.After(hung)
	for {
		d.mu.Lock()
		all := d.shown.String()
		d.mu.Unlock()
		if want.MatchString(all) {
			return
		}
		select {
		case <-d.grown:
		case <-late:
			d.t.Fatalf("the terminal never showed %q:\n%s", pattern, all)
		}
	}
}

// The end of a run shows the last lines of an output that failed, and the command for all of it.
func TestPlanOnATerminal(t *testing.T) {
	d, shared := planConsole(t)
	if err := os.WriteFile(filepath.Join(shared, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	io := &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: d.env, Now: time.Now}
	if code := cli.Main(context.Background(), io, []string{"run", "--plan", "tasks.yaml", "--no-ui", "--no-color"}); code != 1 {
		t.Errorf("ended with %d:\n%s", code, d.sees(""))
	}
	shown := d.sees("    more: lockkeeper job output ")
	d.seesLine(`  failed \+tasks/two \(j\d+\): test: .?"grep [^\r]*\r\n    \| 1\tis not 2\r\n    more: lockkeeper job output j\d+\r\n`)
	if !strings.Contains(shown, "2 of 3 tasks complete, 1 failed") {
		t.Errorf("%q", shown)
	}
	more := regexp.MustCompile(`more: lockkeeper (job output j\d+)`).FindStringSubmatch(d.sees(""))
	if out := d.must(0, strings.Fields(more[1])...); !strings.Contains(out, "1\tis not 2") {
		t.Errorf("the command for more printed:\n%s", out)
	}
}

// Without colors, a terminal gets no escape sequence that sets one.
func TestNoColorOnATerminal(t *testing.T) {
	d, shared := planConsole(t)
	if err := os.WriteFile(filepath.Join(shared, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.must(0, "lock", "acquire", "--holder", "otter", "--write", "three.txt")
	colored := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for _, args := range [][]string{{"status"}, {"doctor"}, {"run", "--plan", "tasks.yaml", "--no-ui", "--only", "two"}} {
		for how, off := range map[string]bool{"": false, "--no-color": true, "NO_COLOR=1": true} {
			t.Run(strings.TrimSpace(args[0]+" "+how), func(t *testing.T) {
				d.mu.Lock()
				d.shown.Reset()
				d.mu.Unlock()
				env, args := d.env, append([]string{}, args...)
				switch {
				case strings.HasPrefix(how, "--"):
					args = append(args, how)
				case how != "":
					env = append(append([]string{}, env...), how)
				}
				cli.Main(context.Background(), &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: env, Now: time.Now}, args)
				fmt.Fprintln(d.tty, "the end")
				if shown := d.sees("the end"); colored.MatchString(shown) == off || len(shown) < 100 {
					t.Errorf("colored: %t\n%q", !off, shown)
				}
			})
		}
	}
}
