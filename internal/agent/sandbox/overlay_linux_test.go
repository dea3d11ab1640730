package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/machine/overlay"
)

// stack makes the directories of a stack beside the workspace, with the shared tree as its lower
// directory.
func (s *scene) stack() overlay.Stack {
	s.t.Helper()
	v := overlay.Stack{Lower: []string{s.root}, Upper: s.dir + "/layers/upper", Work: s.dir + "/layers/work"}
	for _, dir := range []string{v.Upper, v.Work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	return v
}

// merged returns a confinement in which the workspace shows a stack. All directories of the scene
// are listed, so nothing but the overlay itself hides those of the stack.
func (s *scene) merged(v overlay.Stack, sub string) Confinement {
	s.t.Helper()
	if err := os.Remove(s.workspace + "/file"); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return Confinement{Write: []string{s.temp}, Read: []string{s.dir}, Overlays: []Overlay{{Stack: v, Sub: sub, At: s.workspace}}}
}

// eachLevelWithOverlays runs a test as the user of the tests and as an ordinary user. The function
// run runs a confined script in the workspace.
func eachLevelWithOverlays(t *testing.T, test func(t *testing.T, s *scene, run func(c Confinement, script string) string)) {
	eachLevel(t, func(t *testing.T, l Level) {
		if !l.Overlays() {
			t.Skip("no overlays")
		}
		s := newScene(t)
		test(t, s, func(c Confinement, script string) string {
			t.Helper()
			argv, err := Wrap(l, c, []string{"sh", "-c", script, s.dir})
			if err != nil {
				t.Fatal(err)
			}
			said, _ := s.start(argv)
			return said
		})
	})
	eachLevelOfUsers(t, func(t *testing.T, l Level) {
		if !l.Overlays() {
			t.Skip("no overlays")
		}
		s, h := newScene(t), listen(t)
		test(t, s, func(c Confinement, script string) string {
			t.Helper()
			for _, v := range c.Overlays {
				for _, dir := range append([]string{v.Upper, v.Work}, v.Lower...) {
					if out, err := exec.CommandContext(t.Context(), "chown", "-R", "65534:65534", dir).CombinedOutput(); dir != "" && err != nil {
						t.Fatalf("%v: %s", err, out)
					}
				}
			}
			argv, err := Wrap(l, c, []string{"sh", "-c", script, s.dir})
			if err != nil {
				t.Fatal(err)
			}
			cmd := s.asNobody(h, argv)
			cmd.Stdout = nil
			said, err := cmd.CombinedOutput()
			if len(said) == 0 && err != nil {
				t.Error(err)
			}
			return string(said)
		})
	})
}

// eachUserWithOverlays runs a test as root at one level, and as an ordinary user.
func eachUserWithOverlays(t *testing.T, test func(t *testing.T, s *scene, run func(Confinement, string) string)) {
	had := map[string]bool{}
	eachLevelWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
		user := "root"
		if strings.Contains(t.Name(), "#") {
			user = "nobody"
		}
		if had[user] {
			t.Skip("the level makes no difference")
		}
		had[user] = true
		test(t, s, run)
	})
}

// A command changes the merged directory alone, and sees no directory of the stack.
//
// shows: GP-5
func TestOverlay(t *testing.T) {
	eachLevelWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
		v := s.stack()
		c := s.merged(v, "")
		said := run(c, `cat file && pwd && echo changed > file && rm sub/deep && rmdir sub && mkdir sub && echo new > sub/new && ls -A "$0/root" "$0/layers/upper" "$0/layers/work"
			for f in "$0/root/x" "$0/layers/upper/x" "$0/store/x" "$0/x"; do echo x 2>&- > $f && echo "made $f"; done; true`)
		var lines []string
		for line := range strings.Lines(said) {
			if !strings.Contains(line, "cannot create") {
				lines = append(lines, line)
			}
		}
		want := fmt.Sprintf("shared%s\n%s/layers/upper:\n\n%[2]s/layers/work:\n\n%[2]s/root:\n", s.workspace, s.dir)
		if got := strings.Join(lines, ""); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
		for path, want := range map[string]string{v.Upper + "/file": "changed\n", v.Upper + "/sub/new": "new\n", s.root + "/file": "shared", s.root + "/sub/deep": "shared"} {
			if text, err := os.ReadFile(path); err != nil || string(text) != want {
				t.Errorf("%s: %q, %v", path, text, err)
			}
		}
		if left, err := os.ReadDir(s.workspace); err != nil || len(left) != 0 {
			t.Error(left, err)
		}
		// A second command sees what the first one changed.
		if said := run(c, `cat file sub/new; ls -A sub`); said != "changed\nnew\nnew\n" {
			t.Errorf("%q", said)
		}
	})
}

// Without an upper directory nothing can be changed.
func TestOverlayToRead(t *testing.T) {
	eachLevelWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
		v := s.stack()
		said := run(s.merged(overlay.Stack{Lower: v.Lower}, ""), `cat sub/deep; rm -f file 2>&- && echo removed; ls; echo x 2>&- > new && echo made; true`)
		if !strings.HasPrefix(said, "sharedempty\nfile\nsub\n") || strings.Contains(said, "made") {
			t.Errorf("%q", said)
		}
	})
}

// A command sees a directory of the merged directory, and may start in one that exists only there.
func TestOverlayOfSubdirectory(t *testing.T) {
	eachLevelWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
		v := s.stack()
		if err := os.MkdirAll(s.root+"/sub/below", 0o755); err != nil {
			t.Fatal(err)
		}
		c := s.merged(v, "sub")
		c.Dir = s.workspace + "/below"
		said := run(c, `echo x > here; pwd; echo $PWD; ls -A .. . ../..; cat ../deep`)
		if want := fmt.Sprintf("%s\n%[1]s\n.:\nhere\n\n..:\nbelow\ndeep\n\n../..:\n%s\nshared", c.Dir, "tmp\ntree"); said != want {
			t.Errorf("%q instead of %q", said, want)
		}
		if text, err := os.ReadFile(v.Upper + "/sub/below/here"); err != nil || string(text) != "x\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// A link in the merged directory does not lead out of it.
func TestOverlayLinkIsNotFollowed(t *testing.T) {
	eachLevelWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
		if err := os.Symlink(s.store, s.root+"/link"); err != nil {
			t.Fatal(err)
		}
		if said := run(s.merged(s.stack(), "link"), "echo ran"); !strings.HasPrefix(said, "sandbox:") {
			t.Errorf("%q", said)
		}
	})
}

// An order with many long paths arrives.
func TestOverlayWithManyLayers(t *testing.T) {
	eachLevelWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
		v := s.stack()
		v.Lower = nil
		for i := range 200 {
			dir := filepath.Join(s.dir, strings.Repeat(strings.Repeat("x", 250)+"/", 4), fmt.Sprint("layer", i))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			s.put(fmt.Sprint(dir, "/file", i), "")
			v.Lower = append(v.Lower, dir)
		}
		if said := run(s.merged(v, ""), "ls | wc -l"); strings.TrimSpace(said) != "200" {
			t.Errorf("%q", said)
		}
	})
}

// Overlays that cannot be shown are refused.
func TestOverlayIsRefused(t *testing.T) {
	s := newScene(t)
	v := s.stack()
	c := s.merged(v, "")
	var refused *lockkeeper.RefusedError
	for _, l := range []Level{{}, {Landlock: 3}} {
		if _, err := Wrap(l, c, []string{"true"}); !errors.As(err, &refused) {
			t.Errorf("%v: %v", l, err)
		}
	}
	for name, list := range map[string][]Overlay{
		"missing":      {{Stack: v, At: s.dir + "/missing"}},
		"a file":       {{Stack: v, At: s.root + "/file"}},
		"relative":     {{Stack: v, At: "root"}},
		"outside":      {{Stack: v, Sub: "../store", At: s.workspace}},
		"absolute sub": {{Stack: v, Sub: "/store", At: s.workspace}},
		"twice":        {{Stack: v, At: s.workspace}, {Stack: v, At: s.root + "/empty"}},
	} {
		var wrong *lockkeeper.InputError
		if argv, err := Wrap(Level{Namespaces: true}, Confinement{Overlays: list}, []string{"true"}); !errors.As(err, &wrong) {
			t.Errorf("%s: %v, %v", name, argv, err)
		}
	}
}

// BenchmarkStart measures a confined command that does nothing.
func BenchmarkStart(b *testing.B) {
	s := &scene{dir: b.TempDir()}
	dirs := map[string]string{}
	for _, name := range []string{"lower", "upper", "work", "at"} {
		dirs[name] = filepath.Join(s.dir, name)
		if err := os.Mkdir(dirs[name], 0o755); err != nil {
			b.Fatal(err)
		}
	}
	l, err := Probe(b.Context())
	if err != nil || !l.Overlays() {
		b.Skip(l.Missing, err)
	}
	v := Overlay{Stack: overlay.Stack{Lower: []string{dirs["lower"]}, Upper: dirs["upper"], Work: dirs["work"]}, At: dirs["at"]}
	for name, c := range map[string]Confinement{"plain": {Write: []string{dirs["at"]}}, "overlay": {Overlays: []Overlay{v}}} {
		b.Run(name, func(b *testing.B) {
			argv, err := Wrap(l, c, []string{"true"})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
				cmd.Dir = dirs["at"]
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
