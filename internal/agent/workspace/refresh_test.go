package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
)

// others runs a script in the shared tree, as other processes would.
func others(t *testing.T, root, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func TestRefresh(t *testing.T) {
	for _, c := range []struct {
		agent, others string
		paths         []string
		moved         string
		conflicts     []string // as "kind path: state in the shared tree"
		changes       []string // the agent's changes afterwards
		holds         map[string]string
	}{
		{"true", "echo new > a.rb; chmod +x b.rb; rm dir/x.rb; mkdir -p n/m; echo n > n/m/o; ln -sf b.rb link", []string{"."}, "a.rb b.rb dir/x.rb link n/m/o", nil, nil, nil},
		{"true", "echo new > a.rb; echo new > b.rb", []string{"a.rb"}, "a.rb", nil, nil, map[string]string{"a.rb": "new\n", "b.rb": "two\n"}},
		{"true", "rm -r dir", []string{"dir/x.rb", "dir/y.rb", "dir/sub/z.rb"}, "dir/sub/z.rb dir/x.rb dir/y.rb", nil, nil, nil},
		{"true", "rm -r dir; echo file > dir", []string{"dir", "dir/x.rb", "dir/y.rb", "dir/sub/z.rb"}, "dir dir/sub/z.rb dir/x.rb dir/y.rb", nil, nil, nil},
		{"true", "rm a.rb; mkdir a.rb; echo x > a.rb/x", []string{"a.rb/x"}, "a.rb a.rb/x", nil, nil, nil},
		{"true", "rm a.rb; ln -s b.rb a.rb; rm link; echo f > link; rmdir empty; echo f > empty; chmod 700 dir", []string{"."}, "a.rb dir empty link", nil, nil, nil},
		{"echo mine > a.rb; rm b.rb; echo n > n", "echo new > dir/x.rb", []string{"."}, "dir/x.rb", nil, []string{"modified a.rb", "deleted b.rb", "created n"},
			map[string]string{"dir/x.rb": "new\n"}},
		{"echo mine > a.rb", "echo theirs > a.rb", []string{"a.rb"}, "a.rb", []string{"modified a.rb: file 0644 of 7 bytes"}, []string{"modified a.rb"}, map[string]string{"a.rb": "mine\n"}},
		{"echo same > a.rb; echo same > n; rm b.rb; ln -sf b.rb link; mkdir d", "echo same > a.rb; echo same > n; rm b.rb; ln -sf b.rb link; mkdir d", []string{"."}, "a.rb b.rb d link n", nil, nil, nil},
		{"rm a.rb", "echo theirs > a.rb", []string{"a.rb"}, "a.rb", []string{"deleted a.rb: file 0644 of 7 bytes"}, []string{"deleted a.rb"}, nil},
		{"echo mine > a.rb", "rm a.rb", []string{"a.rb"}, "a.rb", []string{"modified a.rb: nothing"}, []string{"modified a.rb"}, map[string]string{"a.rb": "mine\n"}},
		{"chmod +x a.rb", "echo theirs > a.rb", []string{"a.rb"}, "a.rb", []string{"mode changed a.rb: file 0644 of 7 bytes"}, []string{"mode changed a.rb"}, nil},
		{"echo mine > n", "echo theirs > n", []string{"n"}, "n", []string{"created n: file 0644 of 7 bytes"}, []string{"created n"}, map[string]string{"n": "mine\n"}},
		{"echo mine > n", "mkdir n; echo t > n/x", []string{"n"}, "n/x", []string{"created n: drwxr-xr-x", "deleted n/x: file 0644 of 2 bytes"}, []string{"created n"}, nil},
		{"echo mine > dir/n", "rm -r dir", []string{"dir"}, "dir/sub/z.rb dir/x.rb dir/y.rb", nil, []string{"created dir/n"}, map[string]string{"dir/n": "mine\n"}},
		{"echo mine > dir/n", "rm -r dir; echo f > dir", []string{"dir"}, "dir dir/sub/z.rb dir/x.rb dir/y.rb", []string{"created dir: file 0644 of 2 bytes"}, []string{"created dir/n"}, map[string]string{"dir/n": "mine\n"}},
		{"echo mine > dir/x.rb", "rm -r dir", []string{"dir"}, "dir/sub/z.rb dir/x.rb dir/y.rb", []string{"modified dir/x.rb: nothing"}, []string{"modified dir/x.rb"}, map[string]string{"dir/x.rb": "mine\n"}},
		{"rm -r dir", "echo theirs > dir/x.rb; echo n > dir/n", []string{"dir"}, "dir/n dir/x.rb", []string{"deleted dir/x.rb: file 0644 of 7 bytes"},
			[]string{"deleted dir/sub/z.rb", "deleted dir/x.rb", "deleted dir/y.rb"}, map[string]string{"dir/n": "n\n"}},
		{"chmod 700 dir", "chmod 711 dir", []string{"dir"}, "dir", []string{"mode changed dir: drwx--x--x"}, []string{"mode changed dir"}, nil},
		{"chmod 500 dir empty", "echo t > dir/x.rb; echo t > empty/x", []string{"dir/x.rb", "empty/x"}, "dir/x.rb empty/x", nil, []string{"mode changed dir", "mode changed empty"}, map[string]string{"empty/x": "t\n"}},
		{"true", "mkfifo p; rm a.rb; mkfifo a.rb", []string{"."}, "a.rb", nil, nil, nil},
		{"true", "true", []string{"none", "none/at/all", "a.rb/x"}, "", nil, nil, nil},
	} {
		t.Run(c.agent+" and "+c.others, func(t *testing.T) {
			root := base(t)
			w := open(t, Options{Root: root})
			sh(t, w, c.agent)
			others(t, root, c.others)
			before := contents(t, root)
			moved, conflicts, err := w.Refresh(t.Context(), c.paths)
			must(t, err)
			if got := strings.Join(moved, " "); got != c.moved {
				t.Errorf("moved are %q, not %q", got, c.moved)
			}
			var got []string
			for _, conflict := range conflicts {
				got = append(got, fmt.Sprintf("%s %s: %s", conflict.Change.Kind, conflict.Change.Path, conflict.Shared))
			}
			if strings.Join(got, "\n") != strings.Join(c.conflicts, "\n") {
				t.Errorf("conflicts are %q, not %q", got, c.conflicts)
			}
			wantChanges(t, w, c.changes...)
			for path, want := range c.holds {
				if got := read(t, tree(t, w), path); got != want {
					t.Errorf("%s holds %q, not %q", path, got, want)
				}
			}
			if c.conflicts == nil && c.changes == nil && c.holds == nil {
				same(t, "the workspace", contents(t, tree(t, w)), withoutPipes(contents(t, root)))
			}
			same(t, "the shared tree", contents(t, root), before)
			wantChanges(t, reopen(t, w), c.changes...)
		})
	}
}

// After its landing, an agent's change is no longer a change of its workspace.
func TestOwnLanding(t *testing.T) {
	root := base(t)
	l := &landings{t: t, root: root, paths: map[uint64][]string{}}
	w := open(t, Options{Root: root, Landed: l.after})
	write(t, tree(t, w), "a.rb", "mine 1")
	write(t, tree(t, w), "b.rb", "not yet")
	l.land("mine", "a.rb")
	l.land("theirs", "dir/x.rb")
	moved, conflicts, err := w.CatchUp(t.Context())
	if err != nil || !slices.Equal(moved, []string{"a.rb", "dir/x.rb"}) || len(conflicts) > 0 || w.Seq() != 2 {
		t.Errorf("%v, %v, %v, up to %d", moved, conflicts, err, w.Seq())
	}
	wantChanges(t, w, "modified b.rb")
	if read(t, tree(t, w), "dir/x.rb") != "theirs 2" {
		t.Error("what others landed was not brought")
	}
	again := reopen(t, w)
	if again.Seq() != 2 {
		t.Errorf("adopted, it is current up to %d", again.Seq())
	}
	wantChanges(t, again, "modified b.rb")
}

func TestLandingsThatNeverRest(t *testing.T) {
	root, dir := base(t), t.TempDir()
	number := uint64(0)
	busy := func(context.Context, uint64) ([]string, uint64, error) {
		number++
		return []string{"a.rb"}, number, nil
	}
	if w, err := Make(t.Context(), Options{Root: root, Dir: dir, Landed: busy}); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Errorf("%v, %v", w, err)
	}
	broken := errors.New("no store")
	_, err := Make(t.Context(), Options{Root: root, Dir: dir, Landed: func(context.Context, uint64) ([]string, uint64, error) { return nil, 0, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// Refresh does not follow a link that an agent put in the place of a directory.
func TestRefreshFollowsNoLink(t *testing.T) {
	root := base(t)
	w := open(t, Options{Root: root})
	elsewhere := t.TempDir()
	write(t, elsewhere, "x.rb", "x\n")
	must(t, os.RemoveAll(filepath.Join(tree(t, w), "dir")))
	must(t, os.Symlink(elsewhere, filepath.Join(tree(t, w), "dir")))
	write(t, root, "dir/x.rb", "newer\n")
	write(t, root, "dir/n.rb", "new\n")
	moved, conflicts, err := w.Refresh(t.Context(), []string{"dir/x.rb", "dir/n.rb"})
	if err != nil || len(moved) != 2 || len(conflicts) != 2 {
		t.Errorf("%v, %v, %v", moved, conflicts, err)
	}
	same(t, "what is elsewhere", contents(t, elsewhere), map[string]string{".": "drwxr-xr-x ", "x.rb": "-rw-r--r-- x\n"})
}
