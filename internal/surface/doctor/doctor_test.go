package doctor_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/doctor"
	"lockkeeper/internal/surface/view"
)

// TestMain lets the test binary act as the programs that sandboxes and hooks start.
func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if handled, code := program(os.Args); handled {
		os.Exit(code)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each of the many hook processes would sleep for a second at exit
	gittest.Alone()
	os.Exit(m.Run())
}

// host returns the host with a name.
func host(t *testing.T, name string) enrol.Host {
	t.Helper()
	i := slices.IndexFunc(enrol.Hosts(), func(h enrol.Host) bool { return h.Name == name })
	if i < 0 {
		t.Fatalf("no host is called %s", name)
	}
	return enrol.Hosts()[i]
}

// settings returns the settings of a new codebase, for a user with only the usual programs.
func settings(t *testing.T, files map[string]string) project.Settings {
	t.Helper()
	dir, env := t.TempDir(), map[string]string{"XDG_STATE_HOME": t.TempDir(), "HOME": t.TempDir(), "PATH": "/usr/bin:/bin"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := project.Settings{Dir: dir, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if _, err := project.Init(t.Context(), s, project.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// The doctor and the pages report the same level for every way to write.
func TestAgreesWithThePages(t *testing.T) {
	for name, yaml := range map[string]string{"as it comes": "", "sandbox off": "agent:\n  sandbox: off\n", "legacy": "gate:\n  grant: optional\n"} {
		t.Run(name, func(t *testing.T) {
			s := settings(t, map[string]string{"lockkeeper.yaml": yaml})
			h := host(t, "claude")
			root, err := project.FindRoot(s)
			site := enrol.At(root, s.Env)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := site.Plan(h, enrol.Program{Shell: "lockkeeper", Path: "lockkeeper"}) // not in PATH
			if err != nil {
				t.Fatal(err)
			}
			if err := plan.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, err := doctor.Examine(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			a, err := project.Open(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			nodes, err := view.New(a).Nodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Protections) != len(nodes.Enforcement.Protections) {
				t.Fatalf("%+v\n%+v", r.Protections, nodes.Enforcement.Protections)
			}
			for i, w := range nodes.Enforcement.Protections {
				if got := r.Protections[i]; got.Name != w.Name || got.Level != w.Level || got.Broken != w.Broken || !strings.HasPrefix(got.Fact, w.Fact) {
					t.Errorf("doctor says\n%+v\nand the pages\n%+v", got, w)
				}
			}
			if r.OK {
				t.Error("a hook whose program is gone is no trouble")
			}
		})
	}
}

// The trials leave nothing behind, in the codebase or on the shelf.
func TestLeavesNothing(t *testing.T) {
	s := settings(t, nil)
	before, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := doctor.Examine(t.Context(), s)
	if err != nil || !r.OK {
		t.Fatalf("%v %+v", err, r)
	}
	after, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	if err != nil || strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("%v: %v, and before %v", err, after, before)
	}
	a, err := project.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	kept, err := session.Rescued(t.Context(), a)
	entries, wrong := a.Locks.Requests(t.Context())
	if err != nil || wrong != nil || len(kept)+len(entries) > 0 {
		t.Errorf("%v %v: %+v %+v", err, wrong, kept, entries)
	}
}

// Outside a codebase, the doctor reports that there is nothing to examine.
func TestOutside(t *testing.T) {
	if _, err := doctor.Examine(t.Context(), project.Settings{Dir: t.TempDir(), Env: os.LookupEnv}); err == nil || !strings.Contains(err.Error(), "lockkeeper init") {
		t.Errorf("%v", err)
	}
}
