package landing_test

import (
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/projecttest"
	"lockkeeper/rescue"
)

// under runs an act with a lock on some paths and reports whether it was accepted. A path
// that cannot be locked cannot be written either.
func under(t *testing.T, a *project.Project, act func(*lockkeeper.Grant) error, paths ...string) bool {
	t.Helper()
	req := lockkeeper.Request{Holder: "otter"}
	for _, path := range paths {
		l, err := a.Resolve(lockkeeper.Write, path)
		if err != nil {
			return false
		}
		l.Kind = lockkeeper.File
		req.Locks = append(req.Locks, l)
	}
	g, err := a.Acquire(t.Context(), req, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = act(&g.Grant)
	projecttest.Must(t, g.Release(t.Context()))
	return err == nil
}

// Agents can never write protected paths through the gate, whatever the allowlist permits.
func TestGateKeepsProtected(t *testing.T) {
	commit := func(a *project.Project, changes func(path string) []gate.Change, also ...string) func(*testing.T, string) bool {
		return func(t *testing.T, path string) bool {
			return under(t, a, func(g *lockkeeper.Grant) error {
				_, err := landing.ApplyUnder(t.Context(), a, g, changes(path), true)
				return err
			}, append(also, path)...)
		}
	}
	for name, surface := range map[string]func(*project.Project) func(*testing.T, string) bool{
		"put": func(a *project.Project) func(*testing.T, string) bool {
			return commit(a, func(path string) []gate.Change { return []gate.Change{gate.Put(path, []byte("new\n"))} })
		},
		"put, whatever the environment says": func(a *project.Project) func(*testing.T, string) bool {
			return commit(a, func(path string) []gate.Change { return []gate.Change{gate.Put(path, []byte("new\n"))} })
		},
		"rename": func(a *project.Project) func(*testing.T, string) bool {
			n := 0
			return func(t *testing.T, path string) bool {
				n++
				from := "from" + string(rune('A'+n))
				write(t, filepath.Join(a.Root.Dir(), from), "x")
				return under(t, a, func(g *lockkeeper.Grant) error {
					_, err := landing.ApplyUnder(t.Context(), a, g, gate.Rename(from, path), true)
					return err
				}, from, path)
			}
		},
		"permits": func(a *project.Project) func(*testing.T, string) bool {
			return func(t *testing.T, path string) bool { return a.Permits(path) == nil }
		},
		"rescue": func(a *project.Project) func(*testing.T, string) bool {
			return func(t *testing.T, path string) bool {
				e, err := a.Shelf().Put(t.Context(), rescue.Entry{Kind: rescue.Gap, Path: path, Mode: 0o755, Reason: "kept"}, strings.NewReader("new\n"))
				projecttest.Must(t, err)
				return under(t, a, func(g *lockkeeper.Grant) error {
					_, err := landing.LandRescued(t.Context(), a, g, e, landing.Onto{Current: true})
					return err
				}, path)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := projecttest.Empty(t, projecttest.ProtectedConfig)
			if name == "put, whatever the environment says" {
				p.Env = append(p.Env, "SIDECAR_DIR=elsewhere")
			}
			a := p.Open(t)
			projecttest.StayProtected(t, p, surface(a))
		})
	}
}

// Undo does not restore into a directory that has since become a hooks directory. Several files
// that only together make a git directory are refused as well.
func TestProtectedSince(t *testing.T) {
	p := projecttest.Empty(t, "gate: {allowed_write_paths: [.]}\n")
	a := p.Open(t)
	var landed *lockkeeper.Landing
	const hook = "tools/hooks/pre-commit"
	if !under(t, a, func(g *lockkeeper.Grant) error {
		done, err := landing.ApplyUnder(t.Context(), a, g, []gate.Change{gate.Put(hook, []byte("exit 1\n"))}, true)
		if err == nil {
			landed = done.Landing
		}
		return err
	}, hook) {
		t.Fatal("refused before it was a directory of hooks")
	}
	gittest.Run(t, p.Root, "init", "-q")
	gittest.Run(t, p.Root, "config", "core.hooksPath", "tools/hooks")
	if under(t, a, func(g *lockkeeper.Grant) error {
		gate, err := a.Gate()
		if err == nil {
			_, err = gate.Undo(t.Context(), g, landed.Seq)
		}
		return err
	}, hook) || p.Read(t, hook) != "exit 1\n" {
		t.Error("an undo changed a hook")
	}
	bare := []string{"x/HEAD", "x/objects/info/a", "x/refs/heads/a", "x/config"}
	if under(t, a, func(g *lockkeeper.Grant) error {
		var changes []gate.Change
		for _, path := range bare {
			changes = append(changes, gate.Put(path, []byte("ref: refs/heads/main\n")))
		}
		_, err := landing.ApplyUnder(t.Context(), a, g, changes, true)
		return err
	}, bare...) {
		t.Error("a git directory was made")
	}
}
