package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lockkeeper/internal/machine/machinetest"
)

// runArg makes the test binary run one of the scenarios in a directory, as the user that it is.
const runArg = "@test-run"

func TestMain(m *testing.M) {
	if handled, code := Main(os.Args); handled {
		os.Exit(code)
	}
	if len(os.Args) == 4 && os.Args[1] == runArg {
		if err := scenarios[os.Args[2]](context.Background(), os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	goleak.VerifyTestMain(m)
}

// scenarios are the tests that hold for root and for ordinary users.
var scenarios = map[string]func(ctx context.Context, dir string) error{
	"rounds": rounds,
	"layers": layers,
	"names":  names,
	"reads":  reads,
	"probe":  Probe,
}

// TestUsers runs every scenario as root, and as an ordinary user in a user namespace.
func TestUsers(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if os.Geteuid() != 0 {
				if err := scenario(t.Context(), dir); err != nil {
					machinetest.Lacks(t, "%v", err)
				}
				return
			}
			t.Run("root", func(t *testing.T) {
				if err := scenario(t.Context(), dir); err != nil {
					t.Error(err)
				}
			})
			t.Run("nobody", func(t *testing.T) {
				asNobody(t, name, t.TempDir())
			})
		})
	}
}

// asNobody runs a scenario as an ordinary user.
func asNobody(t *testing.T, name, dir string) {
	t.Helper()
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for up := filepath.Dir(dir); up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", runArg, name, dir)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// newStack makes a stack with some lower layers in a directory.
func newStack(dir string, layers int) (Stack, error) {
	s := Stack{Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	for i := range layers {
		s.Lower = append(s.Lower, filepath.Join(dir, fmt.Sprint("lower", i)))
	}
	for _, path := range s.paths() {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return s, err
		}
	}
	return s, nil
}

func put(path, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
}

func read(dir *os.File, name string) (string, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

func write(dir *os.File, name, text string, flags int) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC|flags, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func want(what, got, want string) error {
	if got != want {
		return fmt.Errorf("%s: %q instead of %q", what, got, want)
	}
	return nil
}

// rounds mounts one upper directory again and again, and changes it each time.
func rounds(ctx context.Context, dir string) error {
	s, err := newStack(dir, 2)
	if err != nil {
		return err
	}
	for i := range 200 {
		if err := errors.Join(put(filepath.Join(s.Lower[1], fmt.Sprint("d", i), "file"), "base"), put(filepath.Join(s.Lower[1], fmt.Sprint("gone", i)), "")); err != nil {
			return err
		}
	}
	if err := put(filepath.Join(s.Lower[0], "log"), "0"); err != nil {
		return err
	}
	began, expected := time.Now(), "0"
	for i := range 200 {
		if err := round(ctx, s, i, expected); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		expected += fmt.Sprint(" ", i)
	}
	fmt.Printf("a round takes %v\n", time.Since(began)/200)
	kept, err := os.ReadFile(filepath.Join(s.Lower[0], "log"))
	return errors.Join(err, want("the lower file", string(kept), "0"))
}

func round(ctx context.Context, s Stack, i int, expected string) error {
	merged, err := Open(ctx, s)
	if err != nil {
		return err
	}
	defer merged.Close()
	top, before, this := int(merged.Fd()), fmt.Sprint("d", i-1), fmt.Sprint("d", i)
	if i > 0 {
		moved, err := read(merged, before+"/moved")
		if err := errors.Join(err, want("a moved file", moved, "base")); err != nil {
			return err
		}
		if err := unix.Faccessat(top, fmt.Sprint("gone", i-1), unix.F_OK, 0); !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("a removed file is there again: %v", err)
		}
	}
	log, err := read(merged, "log")
	if err := errors.Join(err, want("the log", log, expected)); err != nil {
		return err
	}
	if err := errors.Join(
		write(merged, "log", fmt.Sprint(" ", i), unix.O_APPEND),
		unix.Unlinkat(top, fmt.Sprint("gone", i), 0),
		unix.Renameat(top, this+"/file", top, this+"/moved"),
		unix.Mkdirat(top, fmt.Sprint("new", i), 0o755)); err != nil {
		return err
	}
	names, err := merged.ReadDir(-1)
	if count := 200 + 199 - i + i + 1 + 1; err != nil || len(names) != count {
		return fmt.Errorf("%d names instead of %d: %w", len(names), count, err)
	}
	upper, err := os.ReadFile(filepath.Join(s.Upper, "log"))
	return errors.Join(err, want("the upper file", string(upper), expected+fmt.Sprint(" ", i)))
}

// layers mounts 200 layers with long paths.
func layers(ctx context.Context, dir string) error {
	s, err := newStack(filepath.Join(dir, strings.Repeat(strings.Repeat("x", 200)+"/", 8)), 200)
	if err != nil {
		return err
	}
	for i, lower := range s.Lower {
		if err := errors.Join(put(filepath.Join(lower, "top"), fmt.Sprint(i)), put(filepath.Join(lower, fmt.Sprint("own", i)), fmt.Sprint(i))); err != nil {
			return err
		}
	}
	for _, s := range []Stack{s, {Lower: s.Lower}} {
		merged, err := Open(ctx, s)
		if err != nil {
			return err
		}
		defer merged.Close()
		top, err := read(merged, "top")
		if err := errors.Join(err, want("the uppermost layer", top, "0")); err != nil {
			return err
		}
		last, err := read(merged, "own199")
		if err := errors.Join(err, want("the lowest layer", last, "199")); err != nil {
			return err
		}
	}
	return nil
}

// names mounts directories whose names have every character that means something to mount(2).
func names(ctx context.Context, dir string) error {
	for _, name := range []string{"a:b", "a,b", `a\b`, `a\:b`, "a b", "a\nb", "a=b", `"a"`, "\xff\x01", "ü", "a,upperdir=b"} {
		s, err := newStack(filepath.Join(dir, name), 2)
		if err != nil {
			return err
		}
		if err := put(filepath.Join(s.Lower[1], "file"), name); err != nil {
			return err
		}
		merged, err := Open(ctx, s)
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		text, err := read(merged, "file")
		if err := errors.Join(err, want("the file", text, name), write(merged, "new", name, 0), merged.Close()); err != nil {
			return err
		}
		made, err := os.ReadFile(filepath.Join(s.Upper, "new"))
		if err := errors.Join(err, want("the new file", string(made), name)); err != nil {
			return err
		}
	}
	return nil
}

// reads mounts without an upper directory.
func reads(ctx context.Context, dir string) error {
	for _, layers := range []int{1, 2} {
		s, err := newStack(filepath.Join(dir, fmt.Sprint(layers)), layers)
		if err != nil {
			return err
		}
		if err := put(filepath.Join(s.Lower[layers-1], "file"), "text"); err != nil {
			return err
		}
		merged, err := Open(ctx, Stack{Lower: s.Lower})
		if err != nil {
			return err
		}
		defer merged.Close()
		text, err := read(merged, "file")
		if err := errors.Join(err, want("the file", text, "text")); err != nil {
			return err
		}
		if err := write(merged, "file", "changed", 0); !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("a file of a read-only mount could be changed: %v", err)
		}
	}
	return nil
}

// A mount changes neither the mounts nor the working directory of its process.
func TestMountLeavesNoTrace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	mounts := func() string {
		text, err := os.ReadFile("/proc/thread-self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		return here + "\n" + string(text)
	}
	s, err := newStack(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	before := mounts()
	mount, err := s.Mount("")
	if err != nil {
		t.Fatal(err)
	}
	defer mount.Close()
	if after := mounts(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// Stacks that cannot be mounted are refused with their reason.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := newStack(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.Lower[0], filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for why, s := range map[string]Stack{
		"no lower directory":             {Upper: s.Upper, Work: s.Work},
		"set together":                   {Lower: s.Lower, Upper: s.Upper},
		"not a clean absolute path":      {Lower: []string{"lower0"}},
		"no such file or directory":      {Lower: []string{filepath.Join(dir, "none")}},
		"too many levels of symbolic":    {Lower: []string{filepath.Join(dir, "link")}},
		filepath.Join(dir, "other"):      {Lower: s.Lower, Upper: filepath.Join(dir, "other"), Work: s.Work},
		"overlay: mount: invalid argume": {Lower: s.Lower, Upper: s.Upper, Work: s.Upper},
	} {
		merged, err := Open(t.Context(), s)
		if err == nil {
			merged.Close()
		}
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v instead of %q", err, why)
		}
	}
}

// A program that does not call Main is told so.
func TestMainMissing(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	here := os.NewFile(uintptr(pair[0]), "socket")
	defer here.Close()
	unix.Close(pair[1])
	if _, err := receive(here); err == nil || !strings.Contains(err.Error(), "overlay.Main") {
		t.Error(err)
	}
}

// Empty removes what an ordinary user may not read.
func TestEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(put(filepath.Join(dir, "work/work/file"), ""), put(filepath.Join(dir, "file"), ""), os.Chmod(filepath.Join(dir, "work/work"), 0)); err != nil {
		t.Fatal(err)
	}
	if err := Empty(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}

// A canceled context ends the wait.
func TestCanceled(t *testing.T) {
	s, err := newStack(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if merged, err := s.openInNamespace(ctx); !errors.Is(err, context.Canceled) {
		t.Error(merged, err)
	}
}
