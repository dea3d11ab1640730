package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/project"
)

// The hook of git shows a person at a terminal whose file the commit has, and asks. The answer is
// in the audit trail. An agent is refused without a question.
//
// shows: CF-15
func TestPersonDecidesAboutCommit(t *testing.T) {
	d := newConsole(t)
	d.env = append(d.env, "NO_COLOR=1", "PATH="+os.Getenv("PATH"))
	gittest.Run(t, d.dir, "init", "-q")
	if err := os.WriteFile(filepath.Join(d.dir, "a.txt"), []byte("half an edit\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, d.dir, "add", "a.txt")
	a, err := project.Open(t.Context(), project.Settings{Dir: d.dir, Env: func(name string) (string, bool) {
		at := strings.TrimPrefix(d.env[0], name+"=")
		return at, at != d.env[0]
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	_, err = a.Hold(t.Context(), lockkeeper.Request{Holder: "fox", Locks: []lockkeeper.Lock{
		{Target: lockkeeper.Target{Path: "a.txt", Kind: lockkeeper.File}, Mode: lockkeeper.Write}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	const question = `Type "commit" to commit these changes anyway`
	out := d.talking(5, []talk{{shown: question, typed: "no"}}, "gate", "changes", "--hook")
	if !strings.Contains(out, "held   a.txt  fox, grant") {
		t.Errorf("it shows %q", out)
	}
	d.talking(0, []talk{{shown: question, typed: "commit"}}, "gate", "changes", "--hook", "--held")
	if log := d.must(0, "audit", "--json"); !strings.Contains(log, "committed although fox holds a.txt") || !strings.Contains(log, `"name":"ada","kind":"person"`) {
		t.Errorf("the audit trail has %s", log)
	}
	d.env = append(d.env, "CLAUDECODE=1")
	d.must(5, "gate", "changes", "--hook")
}
