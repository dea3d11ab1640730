package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/machine/machinetest"
)

// renameEach renames the first of each two paths to the second.
func renameEach(paths []string) int {
	for i := 0; i+1 < len(paths); i += 2 {
		if err := os.Rename(paths[i], paths[i+1]); err != nil {
			fmt.Println(err)
		}
	}
	return 0
}

// grow makes a shared tree with all kinds of entries, and a repository of git that has them. Its
// times are long ago.
func (s *scene) grow(files int) {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "sh", "-ec", `cd "$0"
		mkdir -p d/nested/deep d/empty d/locked many other "odd
name" full
		for i in $(seq $1); do echo $i > many/$i; done
		echo a > d/a; echo b > d/nested/b; echo c > d/nested/deep/c; echo l > d/locked/l; echo o > other/o; echo f > full/f
		ln -s nested/b d/link; ln -s d way; mkfifo d/fifo; echo x > "odd
name/x"
		chmod 444 d/locked/l; chmod 640 d/a; chmod 2750 d/nested
		git init -q .; git add d many other full; git -c user.name=x -c user.email=x@example.com commit -qm x
		chmod 555 d/locked
		find . -exec touch -h -d @1000000000 {} +`, s.root, fmt.Sprint(files)).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// python renames by the call that its arguments name, and prints the errors.
const python = `
import os, ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
def do(f, *a, **k):
    try: f(*a, **k); print("ok", a)
    except OSError as e: print(errno.errorcode[e.errno], a)
def renameat2(a, b, flags):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), flags): raise OSError(ctypes.get_errno(), "")
`

// list prints a tree with everything that a rename must keep.
const list = `; find . -mindepth 1 -path ./.git -prune -o -printf '%P %y %m %l ' \( -type f -printf '%s %n ' -o -true \) \( ! -newermt 2010-01-01 -printf 'old\n' -o -printf 'new\n' \) | sort; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 cat | sha256sum; git status --porcelain | sort`

// renames are scripts that must do the same in an overlay as in an ordinary directory.
var renames = map[string]string{
	"git mv":        `git mv d moved; git mv many other/many; git mv full/f other/; git status --porcelain | grep -c ^R`,
	"mv":            `mv d moved; mv many other; mv "odd` + "\n" + `name" even; mv moved/nested moved/empty moved/locked .; mv nested/deep deeper`,
	"go":            `"$SELF" ` + helperArg + ` rename d moved many other/many other more full/ empty2/ way d d/nested/b full2 missing x`,
	"again":         `for i in 1 2 3 4 5; do mv d moved; mv moved d; done; mv d moved; mkdir d; mv moved d; mv d/moved/nested d; rm -r d/moved; mv d d2`,
	"read-only":     `mv d/locked . ; ls -ld locked locked/l; chmod 755 locked; mv locked d/locked2; chmod 000 other; mv other unreadable; chmod 755 other unreadable 2>&-; true`,
	"a link on way": `mv way/nested way/empty/; mv way/empty way/empty2; mv "$PWD/way/empty2" "$PWD/d2"`,
	"open files":    `exec 3<d/a 4>>d/nested/b; mv d moved; cat <&3; echo more >&4; cat moved/nested/b`,
	"errors": `python3 -c '` + python + `
do(os.rename, "d", "full"); do(os.rename, "d", "d/nested/x"); do(os.rename, "d", "d/a"); do(os.rename, "d", "other/o"); do(os.rename, "d/a", "other")
do(os.rename, "missing", "x"); do(os.rename, "d", "missing/x"); do(os.rename, ".", "x"); do(os.rename, "d/.", "x"); do(os.rename, "d/..", "x"); do(os.rename, "d", "d"); do(os.rename, "", "x"); do(os.rename, "d", "")
do(os.rename, "d/nested", "d"); do(os.rename, "d", "x" * 300); do(os.rename, "way/", "x"); do(os.rename, "many", "d/empty"); do(os.rename, "d/nested/", "full/y/"); do(os.rename, "d/a", "z/"); do(os.rename, "full//", "./d//full")'`,
	"flags": `python3 -c '` + python + `
do(renameat2, "d", "full", 1); do(renameat2, "d", "d/empty", 1); do(renameat2, "d", "moved", 1); do(renameat2, "many", "other/o", 2); do(renameat2, "full", "other", 2)
do(renameat2, "moved", "moved/nested", 2); do(renameat2, "moved/a", "full", 2); do(renameat2, "moved", "missing", 2); do(renameat2, "moved", "x", 3); do(renameat2, "moved", "x", 64)'`,
	"descriptors": `python3 -c '` + python + `
d, o = os.open("d", os.O_RDONLY), os.open("other", os.O_RDONLY)
do(os.rename, "nested", "there", src_dir_fd=d, dst_dir_fd=o); do(os.rename, "there/deep", "back", src_dir_fd=o, dst_dir_fd=d); do(os.rename, os.getcwd() + "/many", "many", src_dir_fd=d, dst_dir_fd=d)
do(os.rename, "x", "y", src_dir_fd=99); os.chdir("other"); do(os.rename, "there", "../there"); do(os.rename, "../full", "."); do(os.rename, "../full", "full")'`,
	"threads": `python3 -c '
import os, threading
for i in range(40): os.mkdir("n%d" % i)
def work(i):
    for k in range(25):
        n = i * 25 + k + 1
        os.rename("many/%d" % n, "n%d/%d" % (i, n)); os.rename("n%d" % i, "m%d" % i); os.rename("m%d" % i, "n%d" % i)
ts = [threading.Thread(target=work, args=(i,)) for i in range(40)] + [threading.Thread(target=os.rename, args=(a, a + "2")) for a in ("d", "other", "full")]
[t.start() for t in ts]; [t.join() for t in ts]'`,
	"signals": `python3 -c '
import os, signal
signal.signal(signal.SIGALRM, lambda *a: None); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def rename(a, b):
    while True:
        try: return os.rename(a, b)
        except InterruptedError: pass # before the rename began
for i in range(3): rename("many", "many2"); rename("d", "d2"); rename("many2", "many"); rename("d2", "d")
rename("many", "other/many"); rename("d", "other/d")'`,
}

// files has the numbers of files in the directory many.
var files = map[string]int{"git mv": 1000, "threads": 1000, "signals": 1000}

// A directory that comes from a lower directory is renamed as in an ordinary directory.
func TestRenamesOfDirectories(t *testing.T) {
	if !RenamesLower() { // the tests below fail if this is wrong
		machinetest.Lacks(t, "the kernel reports no renames")
	}
	for name, script := range renames {
		t.Run(name, func(t *testing.T) {
			eachUserWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
				s.grow(files[name])
				plain := s.temp + "/plain"
				if out, err := exec.CommandContext(t.Context(), "cp", "-a", s.root, plain).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				self := s.dir + "/self"
				if out, err := exec.CommandContext(t.Context(), "cp", "/proc/"+fmt.Sprint(os.Getpid())+"/exe", self).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				script := "umask 022; SELF=" + self + "; " + script + list
				c := s.merged(s.stack(), "")
				got, before := run(c, script), s.shared()
				want := run(Confinement{Write: []string{s.temp}, Read: []string{self}, Dir: plain}, script)
				want = strings.ReplaceAll(want, plain, s.workspace)
				if got != want {
					t.Errorf("in an overlay:\n%s\nin an ordinary directory:\n%s", difference(got, want), difference(want, got))
				}
				if after := s.shared(); after != before {
					t.Error("the lower directory changed")
				}
			})
		})
	}
}

// difference returns the lines of a text that another one does not have.
func difference(text, other string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(other, line) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// A process that is killed during its rename, or a command that ends during one, leaves a whole
// source or a whole target.
func TestRenameThatIsInterrupted(t *testing.T) {
	for name, script := range map[string]string{
		"killed": `python3 -c 'import os; os.rename("many", "moved")' & sleep 0.$0; kill -9 $!; wait $!; mv full full2; ls full2`,
		"ended":  `python3 -c 'import os; os.rename("many", "moved")' & sleep 0.$0; echo f`,
	} {
		t.Run(name, func(t *testing.T) {
			eachUserWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
				s.grow(1000)
				c := s.merged(s.stack(), "")
				for _, delay := range []string{"02", "05", "1"} {
					said := run(c, strings.ReplaceAll(script, "$0", delay))
					if !strings.HasSuffix(said, "f\n") {
						t.Errorf("%q", said)
					}
					left := run(c, `mv full2 full 2>&-; ls many 2>&- | wc -l; ls moved 2>&- | wc -l; ls -d .rename* 2>&-; mv moved many 2>&-; true`)
					if left != "1000\n0\n" && left != "0\n1000\n" {
						t.Errorf("%q", left)
					}
				}
			})
		})
	}
}

// A process that has restricted itself further gets the answer of the kernel.
func TestRenameInNestedSandbox(t *testing.T) {
	eachUserWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
		s.grow(3)
		said := run(s.merged(s.stack(), ""), `unshare -Ur python3 -c 'import os
try: os.rename("d", "moved"); print("renamed")
except OSError as e: print(e.errno)'`)
		if strings.Contains(said, "renamed") {
			t.Errorf("%q", said)
		}
	})
}

// A path in /proc means the files of the calling process, not those of the sandbox.
func TestRenameThroughProc(t *testing.T) {
	eachUserWithOverlays(t, func(t *testing.T, s *scene, run func(Confinement, string) string) {
		s.grow(3)
		said := run(s.merged(s.stack(), ""), `cd d; python3 -c 'import os
for base in ("/proc/self/cwd/", "/proc/thread-self/cwd/", "/proc/1/cwd/"):
    try: os.rename(base + "nested", base + "moved"); print("renamed")
    except OSError as e: print(e.errno)'; ls`)
		if strings.Contains(said, "renamed") || !strings.Contains(said, "nested") {
			t.Errorf("%q", said)
		}
	})
}

// BenchmarkRename measures renames of files. They are slower if renames of directories are served.
func BenchmarkRename(b *testing.B) {
	l, err := Probe(b.Context())
	if err != nil || !l.Overlays() {
		b.Skip(l.Missing, err)
	}
	for name, overlays := range map[string]bool{"plain": false, "served": true} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			c := Confinement{Write: []string{filepath.Join(dir, "write")}}
			for _, name := range []string{"write", "lower", "upper", "work", "at"} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
					b.Fatal(err)
				}
			}
			if overlays {
				v := Overlay{At: filepath.Join(dir, "at")}
				v.Lower, v.Upper, v.Work = []string{filepath.Join(dir, "lower")}, filepath.Join(dir, "upper"), filepath.Join(dir, "work")
				c.Overlays = []Overlay{v}
			}
			argv, err := Wrap(l, c, []string{"python3", "-c", `import os, time
open("a", "w").close()
began = time.monotonic_ns()
for i in range(5000): os.rename("a", "b"); os.rename("b", "a")
print(time.monotonic_ns() - began)`})
			if err != nil {
				b.Fatal(err)
			}
			var took time.Duration
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
				cmd.Dir = c.Write[0]
				out, err := cmd.Output()
				ns, bad := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
				if err != nil || bad != nil {
					b.Fatalf("%v: %s", err, out)
				}
				took += time.Duration(ns)
			}
			b.ReportMetric(float64(took.Microseconds())/10_000/float64(b.N), "µs/rename")
		})
	}
}
