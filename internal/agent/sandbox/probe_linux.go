package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Probe finds the Level that this machine supports by trial: it confines a command that tries
// forbidden operations. The result is valid as long as this program runs.
//
// An error means that the trial could not be made, for example because there is no temporary
// directory. A machine without a sandbox is not an error.
func Probe(ctx context.Context) (Level, error) {
	var failed []string
	for _, l := range candidates(landlockVersion()) {
		why, err := runTrial(ctx, l)
		if err != nil {
			return Level{}, fmt.Errorf("try the sandbox: %w", err)
		}
		if why == "" {
			l.Missing = strings.Join(failed, "; ")
			return l, nil
		}
		failed = append(failed, fmt.Sprintf("%s: %s", l, why))
	}
	return Level{Missing: strings.Join(append(failed, "Landlock is missing or does not work"), "; ")}, nil
}

// candidates lists the levels that may work, best first.
func candidates(landlock int) []Level {
	var list []Level
	if os.Geteuid() == 0 {
		list = append(list, Level{Landlock: landlock, Namespaces: true})
	}
	list = append(list, Level{Landlock: landlock, Namespaces: true, User: true})
	if landlock > 0 {
		list = append(list, Level{Landlock: landlock})
	}
	return list
}

// makeTrial makes the directories of a trial: one that the confined command may write,
// one that it may read, and one that is not listed.
func makeTrial() (string, error) {
	dir, err := os.MkdirTemp("", "lockkeeper-sandbox-")
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	for _, name := range []string{"inside", "shown", "outside", "private"} {
		if err == nil {
			err = os.Mkdir(filepath.Join(real, name), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(real, name, "file"), []byte("text"), 0o600)
		}
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return real, nil
}

// runTrial returns why a level does not work, or "" if it works.
func runTrial(ctx context.Context, l Level) (why string, err error) {
	dir, err := makeTrial()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	claim, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	c := Confinement{Write: []string{filepath.Join(dir, "inside")}, Read: []string{filepath.Join(dir, "shown")}, Private: filepath.Join(dir, "private")}
	argv, err := Wrap(l, c, []string{self, tryArg, string(claim), dir})
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(dir, "inside")
	said, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil:
		return "", nil
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if line == "" {
		line = err.Error()
	}
	return line, nil
}

// try is the confined command of a trial. It reports forbidden operations that worked and
// permitted operations that failed.
func try(args []string) int {
	var l Level
	if len(args) != 2 || json.Unmarshal([]byte(args[0]), &l) != nil {
		return report(errors.New("invalid arguments of a trial"))
	}
	inside, file, secret := filepath.Join(args[1], "inside"), filepath.Join(args[1], "shown", "file"), filepath.Join(args[1], "outside", "file")

	if err := os.WriteFile(filepath.Join(inside, "new"), nil, 0o600); err != nil {
		return report(fmt.Errorf("cannot write where it may write: %w", err))
	}
	if err := errorOf(os.ReadFile(file)); err != nil {
		return report(fmt.Errorf("cannot read what it may read: %w", err))
	}
	for _, forbidden := range []struct {
		what    string
		claimed bool
		err     error
	}{
		{"read a file that is not listed", l.HoldsReads(), errorOf(os.ReadFile(secret))},
		{"see a file that is not listed", l.Hides(), errorOf(os.Lstat(secret))},
		{"write to a file", true, opened(file, unix.O_WRONLY)},
		{"make a file", true, os.WriteFile(file+".new", nil, 0o600)},
		{"rename a file", true, os.Rename(file, filepath.Join(inside, "taken"))},
		{"link a file", true, os.Link(file, filepath.Join(inside, "linked"))},
		{"remove a file", true, os.Remove(file)},
		{"truncate a file", l.HoldsWrites(), os.Truncate(file, 0)},
		{"change a mode", l.Namespaces, os.Chmod(file, 0o644)},
		{"see other processes", l.Namespaces, seesOthers()},
		{"open the terminal", true, opened("/dev/tty", unix.O_RDWR)},
		{"type into a terminal", true, types()},
	} {
		if forbidden.claimed && forbidden.err == nil {
			return report(fmt.Errorf("it could still %s outside of the sandbox", forbidden.what))
		}
	}
	return 0
}

// errorOf drops the value that a call returned and returns its error.
func errorOf[T any](_ T, err error) error { return err }

func opened(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err == nil {
		f.Close()
	}
	return err
}

// types returns an error if the filter blocks the system call that types into a
// terminal, or if this architecture has no filter.
func types() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil
	}
	defer null.Close()
	if err := unix.IoctlSetInt(int(null.Fd()), unix.TIOCSTI, 0); errors.Is(err, unix.EPERM) || len(abis[runtime.GOARCH]) == 0 {
		return errors.New("filtered")
	}
	return nil
}

// seesOthers returns an error in a PID namespace of its own with its own /proc. There,
// the first process is the parent of this one.
func seesOthers() error {
	first, err := os.Readlink("/proc/self")
	if err == nil && os.Getppid() == 1 && first == fmt.Sprint(os.Getpid()) {
		return errors.New("alone")
	}
	return nil
}
