package hook_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/project/projecttest"
)

// An agent's tools and commands cannot write protected files.
func TestHooksKeepProtected(t *testing.T) {
	for name, call := range map[string]func(s *stage, path string) said{
		"edit":     func(s *stage, path string) said { return s.edit("A", path) },
		"redirect": func(s *stage, path string) said { return s.bash("A", "PreToolUse", "echo x >> "+path) },
		"copy":     func(s *stage, path string) said { return s.bash("A", "PreToolUse", "cp new "+path) },
		"program": func(s *stage, path string) said {
			return s.bash("A", "PreToolUse", "python3 -c \"open('"+path+"', 'a').write('x')\"")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.write("lockkeeper.yaml", projecttest.ProtectedConfig)
			projecttest.StayProtected(t, &projecttest.Project{Root: s.dir}, func(t *testing.T, path string) bool {
				return call(s, path).code == 0
			})
		})
	}
}

// A directory that contains a protected file cannot be removed, moved or replaced by a link.
func TestHooksKeepDirectories(t *testing.T) {
	s := newStage(t)
	s.write("lockkeeper.yaml", projecttest.ProtectedConfig)
	projecttest.Protected(t, s.dir)
	outside := t.TempDir()
	projecttest.Must(t, os.MkdirAll(filepath.Join(outside, "hooks"), 0o755),
		os.WriteFile(filepath.Join(s.home, ".gitconfig"), []byte("[core]\n\thooksPath = "+outside+"/hooks\n"), 0o644))
	t.Setenv("GIT_CONFIG_GLOBAL", "") // restored after the test
	projecttest.Must(t, os.Unsetenv("GIT_CONFIG_GLOBAL"))
	for _, command := range []string{"rm -rf .pipeline", "mv .pipeline x", "mv .husky x", "rm -rf .husky/_", "rm -r flows", "mv records x", "rm -rf records", "ln -s /tmp flows", "mv docs/flow/users x",
		"rm -rf store/sub", "rm -rf mirror", "rm -rf vendor/lib/.git", "mv vendor/lib/.git x", "rm .pipeline/users/decisions.json", "echo x > " + outside + "/hooks/pre-commit", "mv " + outside + "/hooks /tmp/x",
		"rm -rf .git", "mv vendor/lib/hooks x", "rm team.gitconfig", "sed -i s/x/y/ .pipeline/users/decisions.json"} {
		s.refuses(s.bash("A", "PreToolUse", command))
	}
	for _, command := range []string{"cat .pipeline/users/decisions.json", "ls .git .husky", "echo x > /dev/null", "git status", "mv docs/.pipeline x", "python3 -c \"import os\nfor d in ('.git', 'x'): print(d)\nopen('out.txt','w').write('x')\""} {
		s.passes(s.bash("A", "PreToolUse", command))
		s.passes(s.bash("A", "PostToolUse", command))
	}
}
