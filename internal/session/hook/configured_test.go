package hook_test

import (
	"testing"

	"lockkeeper/internal/git/gittest"
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
