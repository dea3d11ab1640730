package lfs_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/project/projecttest"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/cli"
)

// TestMain lets the test binary act as the program under test.
func TestMain(m *testing.M) {
	projecttest.Main(m, projecttest.Program{Name: projecttest.Lockkeeper, Main: cli.Process})
}

var must = projecttest.Must

// A scene is a codebase with its locks and the tokens of some people.
type scene struct {
	*projecttest.Codebase
	t      *testing.T
	tokens map[string]string // by name
}

func newScene(t *testing.T) *scene {
	t.Helper()
	p := projecttest.Empty(t, "").With(t, map[string]string{".gitattributes": "*.psd lockable\n", "art/hero.psd": "hero\n", "art/tree.psd": "tree\n", "art/sky.psd": "sky\n"})
	p.Env = append(p.Env, "GIT_CONFIG_NOSYSTEM=1", "LANG=C", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	s := &scene{Codebase: p.Codebase(t), t: t, tokens: map[string]string{}}
	for name, role := range map[string]access.Role{"ann": access.Operator, "bob": access.Operator, "root": access.Admin, "vic": access.Viewer, "robot": access.Agent} {
		s.tokens[name] = s.Token(t, name, role)
	}
	return s
}

// run runs a command in a directory and returns its output and error.
func (s *scene) run(dir string, argv ...string) (string, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, s.Env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// do runs a command that must succeed.
func (s *scene) do(dir string, argv ...string) string {
	s.t.Helper()
	out, err := s.run(dir, argv...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return out
}

// refused runs a command that must fail with these words in its output.
func (s *scene) refused(dir string, says []string, argv ...string) {
	s.t.Helper()
	out, err := s.run(dir, argv...)
	if err == nil {
		s.t.Fatalf("%s worked:\n%s", strings.Join(argv, " "), out)
	}
	for _, word := range says {
		if !strings.Contains(out, word) {
			s.t.Errorf("%s does not say %q:\n%s", strings.Join(argv, " "), word, out)
		}
	}
}
