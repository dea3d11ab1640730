package hook_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/session/hook"
)

// Uncommitted files are found and kept, whatever a person's git configuration is.
func TestUncommittedOfAPersonWithAConfiguration(t *testing.T) {
	s := newRepository(t)
	gittest.Hostile(t)
	for command, takes := range map[string][]string{
		"git checkout .":                {user},
		"git restore '*.rb'":            {user},
		"git stash -u":                  {user, "notes/plan.txt"},
		"git clean -fdx -e .lockkeeper": {"notes/plan.txt", ".env"},
		"rm -rf notes":                  {"notes/plan.txt"},
	} {
		s.refuses(s.bash("A", "PreToolUse", command), takes...)
	}
	_, after := s.tries("A", "find . -name plan.txt -delete")
	s.says(after, "REMOVED notes/plan.txt")
	s.keeps("notes/plan.txt", "a plan\n")
}

// A call reads the configuration once: parsing it was a fifth of the time of a hook.
func TestConfigurationIsReadOnce(t *testing.T) {
	s := newRepository(t)
	input := fmt.Sprintf(`{"session_id":"A","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t","cwd":%q,"tool_input":{"command":"sed -i s/a/b/ %s"}}`, s.dir, user)
	reads := 0
	env := func(name string) (string, bool) {
		if name == "MAX_API_CONCURRENCY" {
			reads++
		}
		value, known := map[string]string{"XDG_STATE_HOME": s.state, "HOME": s.home, "PATH": os.Getenv("PATH")}[name]
		return value, known
	}
	var out, errs bytes.Buffer
	if code := hook.Run(t.Context(), "claude-code", hook.Process{In: strings.NewReader(input), Out: &out, Err: &errs, Env: env}); code != 0 || reads != 1 {
		t.Errorf("ended with %d after %d reads: %s%s", code, reads, out.String(), errs.String())
	}
}
