package author_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/compat/bookfile"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
)

func TestMain(m *testing.M) {
	if told, ok := os.LookupEnv(writerVariable); ok {
		os.Exit(write(told))
	}
	gittest.Alone()
	goleak.VerifyTestMain(m)
}

var must = projecttest.Must

const settings = `locks_file: .locks/locks.json
gate:
  allowed_write_paths: ["."]
resources:
  Chapter_{nn}:
    files:
      - Manuscript/Chapters/Chapter_{nn}/
  StyleSystem:
    files: [Manuscript/Style/Style_Guide.md]
  ImageRegistry:
    files: [Manuscript/images/Image_Registry.md, Manuscript/Chapters/Chapter_09/images.md]
`

// A study is a project of an author, with its claims in an SQLite file.
type study struct {
	t    *testing.T
	root string
	env  []string
	app  *project.Project
	*author.Author
}

func newStudy(t *testing.T, more string) *study {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := &study{t: t, root: filepath.Join(dir, "book"), env: []string{"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "HOME=" + dir, "PATH=" + os.Getenv("PATH")}}
	must(t, os.Mkdir(s.root, 0o755), os.WriteFile(filepath.Join(s.root, "lockkeeper.yaml"), []byte(settings+more), 0o644))
	_, err = project.Init(t.Context(), s.settings(), project.InitOptions{})
	must(t, err)
	s.open()
	return s
}

func (s *study) settings() project.Settings {
	return project.Settings{Dir: s.root, Env: projecttest.Lookup(s.env)}
}

func openApp(ctx context.Context, s *study) (*project.Project, error) {
	return project.Open(ctx, s.settings())
}

func (s *study) open() {
	s.t.Helper()
	var err error
	s.app, err = openApp(s.t.Context(), s)
	must(s.t, err)
	s.t.Cleanup(func() { must(s.t, s.app.Close()) })
	s.Author, err = author.Open(s.app, s.env)
	must(s.t, err)
}

var ada = lockkeeper.Actor{Name: "ada", Kind: lockkeeper.ActorPerson}

// instance returns an agent instance with its own process, which lives until end is called
// or the test ends.
func (s *study) instance(id string) (i author.Instance, end func()) {
	s.t.Helper()
	cmd := exec.Command("sleep", "1000")
	must(s.t, cmd.Start())
	p, err := process.Identify(cmd.Process.Pid)
	must(s.t, err)
	end = func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	s.t.Cleanup(end)
	return author.Instance{ID: id, Agent: "claude", Process: &p}, end
}

// person returns a person at a terminal.
func (s *study) person(id string) author.Instance {
	i, _ := s.instance(id)
	i.Agent, i.Who = "", "ada on pts/1"
	return i
}

func (s *study) want(by author.Instance, names ...string) author.Request {
	return author.Request{By: by, Names: names, Mode: lockkeeper.Write, Person: ada}
}

// claim makes a claim that must succeed.
func (s *study) claim(by author.Instance, names ...string) *author.Result {
	s.t.Helper()
	a, err := s.Claim(s.t.Context(), s.want(by, names...))
	must(s.t, err)
	if len(a.Conflicts) > 0 {
		s.t.Fatalf("%v conflicts: %+v", names, a.Conflicts)
	}
	return a
}

// blocked makes a claim that must conflict.
func (s *study) blocked(by author.Instance, names ...string) []author.Conflict {
	s.t.Helper()
	a, err := s.Claim(s.t.Context(), s.want(by, names...))
	must(s.t, err)
	if len(a.Conflicts) == 0 {
		s.t.Fatalf("%v could be claimed", names)
	}
	return a.Conflicts
}

func (s *study) path() string { return filepath.Join(s.root, ".locks", "locks.json") }

// file returns the entries of the locks file.
func (s *study) file() []bookfile.Entry {
	s.t.Helper()
	text, err := os.ReadFile(s.path())
	must(s.t, err)
	entries, err := bookfile.Decode(text)
	must(s.t, err)
	return entries
}

// foreign writes the file as a foreign tool would.
func (s *study) foreign(entries ...bookfile.Entry) {
	s.t.Helper()
	if entries == nil {
		entries = []bookfile.Entry{}
	}
	text, err := json.Marshal(map[string]any{"locks": entries})
	must(s.t, err, os.MkdirAll(filepath.Dir(s.path()), 0o755), os.WriteFile(s.path(), text, 0o644))
}

func entry(resource, instance string, age time.Duration) bookfile.Entry {
	return bookfile.Entry{Resource: resource, Instance: instance, Timestamp: time.Now().Add(-age).UTC().Format(time.RFC3339)}
}

// listed synchronizes the file and returns the claims by resource.
func (s *study) listed() map[string]author.GrantStatus {
	s.t.Helper()
	list, _, err := s.Claims(s.t.Context())
	must(s.t, err)
	by := map[string]author.GrantStatus{}
	for _, c := range list {
		for _, name := range c.Resources {
			by[name] = c
		}
	}
	return by
}

// hasEntry reports whether the file contains a claim.
func (s *study) hasEntry(resource, instance string) bool {
	return slices.ContainsFunc(s.file(), func(e bookfile.Entry) bool { return e.Resource == resource && e.Instance == instance })
}
