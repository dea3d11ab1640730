package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the output of the commands into docs/tutorial.md")

const tutorial = "../../docs/tutorial.md"

// The commands of the tutorial work in this order, and print what the page says. Ids, times and
// numbers of landings differ each time.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile(tutorial)
	if err != nil {
		t.Fatal(err)
	}
	s := startShell(t)
	var page strings.Builder
	for i, part := range strings.SplitAfter(string(text), "```") { // odd parts are in fences
		code, fenced := strings.CutSuffix(part, "```")
		if i%2 == 0 || !fenced {
			page.WriteString(part)
			continue
		}
		lang, body, _ := strings.Cut(code, "\n")
		got := body
		if lang == "sh" {
			s.run(t, body)
		} else {
			got = s.console(t, body)
		}
		if !says(body, got) {
			if !*update {
				t.Errorf("docs/tutorial.md says\n%s\nbut it is\n%s\nnext: go test ./cmd/lockkeeper -run TestTutorial -update", body, got)
			}
			body = got
		}
		page.WriteString(lang + "\n" + body + "```")
	}
	if *update {
		if err := os.WriteFile(tutorial, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// says reports whether the text of the page is the output. A line "…" in the page stands for any lines.
func says(page, output string) bool {
	var parts []string
	for part := range strings.SplitSeq(page, "…\n") {
		parts = append(parts, regexp.QuoteMeta(constant(part)))
	}
	return regexp.MustCompile(`^(?s:` + strings.Join(parts, `.*`) + `)$`).MatchString(constant(output))
}

// constant returns a text without what differs from run to run, and without alignment.
func constant(text string) string {
	return variable.ReplaceAllString(spaces.ReplaceAllString(text, " "), "#")
}

var spaces = regexp.MustCompile(` +`)

var variable = regexp.MustCompile(`(\b[0-9a-f]{8}(-[0-9a-f-]{27})?\b|\b\d{8}T\d{6}\.\d+(-[0-9a-f]+)?|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}|\d\d:\d\d:\d\d|\b(\d+(\.\d+)?(ms|s|m|h))+\b|\bj\d+\b|127\.0\.0\.1:\d+|\b\d{1,6}\b|/\S*/hello\b)|landlock v\d+|own control group`)

// A shell runs the commands of the page one after the other.
type shell struct {
	in  io.Writer
	out *bufio.Reader
}

func startShell(t *testing.T) *shell {
	cmd := exec.CommandContext(t.Context(), "bash")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_STATE_HOME="+cmd.Dir+"/.state", "GIT_CONFIG_SYSTEM="+os.DevNull, "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // fails if the last command did
	})
	return &shell{in, bufio.NewReader(out)}
}

const end = "\x1eended "

// ask runs a command and returns its output and exit code.
func (s *shell) ask(t *testing.T, command string) (out, code string) {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, "{ %s\n} </dev/null 2>&1\nprintf '\\n%s%%s\\n' $?\n", strings.TrimSpace(command), end); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if code, ended := strings.CutPrefix(line, end); ended {
			return strings.TrimSuffix(out, "\n"), strings.TrimSpace(code)
		}
		out += line
	}
}

// run runs commands that must succeed.
func (s *shell) run(t *testing.T, commands string) {
	t.Helper()
	if out, code := s.ask(t, "set -e\n"+commands+"set +e"); code != "0" {
		t.Fatalf("exit code %s:\n%s\n%s", code, commands, out)
	}
}

// console runs each line that begins with "$ ", and returns the lines with their output.
func (s *shell) console(t *testing.T, body string) (got string) {
	t.Helper()
	for line := range strings.Lines(body) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			out, _ := s.ask(t, command) // the page shows refusals, too
			got += line + out
		}
	}
	return got
}
