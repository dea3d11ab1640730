package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli"
	"lockkeeper/internal/surface/cli/term"
)

// The table of sessions fits the terminal, even if their paths are long.
func TestSessionsFitATerminal(t *testing.T) {
	d := newConsole(t)
	a, err := project.Open(t.Context(), project.Settings{Dir: d.dir, Env: projecttest.Lookup(d.env)})
	projecttest.Must(t, err)
	defer a.Close()
	sess, err := session.Open(a).Enter(t.Context(), session.Caller{ID: "s1", Agent: "claude-code", About: "rate-limit the login of users"})
	projecttest.Must(t, err)
	var list []session.Write
	for i := range 3 {
		list = append(list, session.Write{Path: fmt.Sprintf("app/controllers/users/sessions_controller_%d.rb", i)})
	}
	said, err := sess.Claim(t.Context(), list...)
	projecttest.Must(t, err, sess.Close())
	if len(said) > 0 {
		t.Fatalf("refused: %v", said)
	}
	code := cli.Main(context.Background(), &term.IO{In: d.tty, Out: d.tty, Err: d.tty, Dir: d.dir, Env: append(d.env, "NO_COLOR=1"), Now: time.Now}, []string{"status"})
	if code != 0 {
		t.Fatal(code)
	}
	_, sessions, _ := strings.Cut(d.sees("held: "), "at work: ")
	sessions, _, _ = strings.Cut(sessions, "held: ")
	for _, line := range strings.Split(sessions, "\n") {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\r")); n > 100 {
			t.Errorf("%d of 100 columns: %s", n, line)
		}
	}
	if !strings.Contains(sessions, "app/contr") || !strings.Contains(sessions, "rate-limit") {
		t.Errorf("it does not say what is held, or what for:\n%s", sessions)
	}
}
