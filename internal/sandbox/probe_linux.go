package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Probe finds what this machine can do by doing it: a command is confined and
// tries what must fail. What a kernel says about itself is believed only as far
// as that. The answer holds as long as this program runs.
//
// The error says that no trial could be made, as for want of a temporary
// directory, and not that the machine has no sandbox.
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
	return Level{Missing: strings.Join(append(failed, "no version of Landlock holds"), "; ")}, nil
}

// candidates lists what may work, best first.
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

// makeTrial makes a directory with what a confined command is to try.
func makeTrial() (string, error) {
	dir, err := os.MkdirTemp("", "lockkeeper-sandbox-")
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	for _, name := range []string{"inside", "outside", "hidden"} {
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

// runTrial says why a level does not hold, "" if it does.
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
	argv, err := Wrap(l, Confinement{Write: []string{filepath.Join(dir, "inside")}, Hidden: []string{filepath.Join(dir, "hidden")}},
		[]string{self, tryArg, string(claim), dir})
	if err != nil {
		return "", err
	}
	said, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
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

// try is the confined command: it says what it could do and should not, or
// could not and should.
func try(args []string) int {
	var l Level
	if len(args) != 2 || json.Unmarshal([]byte(args[0]), &l) != nil {
		return report(errors.New("try what?"))
	}
	inside, outside := filepath.Join(args[1], "inside"), filepath.Join(args[1], "outside")
	file := filepath.Join(outside, "file")

	if err := os.WriteFile(filepath.Join(inside, "new"), nil, 0o600); err != nil {
		return report(fmt.Errorf("what may be written cannot be: %w", err))
	}
	open := func(flag int) error {
		f, err := os.OpenFile(file, flag, 0)
		if err == nil {
			f.Close()
		}
		return err
	}
	for _, forbidden := range []struct {
		what    string
		claimed bool
		err     error
	}{
		{"write to a file", true, open(unix.O_WRONLY)},
		{"make a file", true, os.WriteFile(file+".new", nil, 0o600)},
		{"rename a file", true, os.Rename(file, filepath.Join(inside, "taken"))},
		{"link a file", true, os.Link(file, filepath.Join(inside, "linked"))},
		{"remove a file", true, os.Remove(file)},
		{"truncate a file", l.HoldsWrites(), os.Truncate(file, 0)},
		{"change a mode", l.HoldsAttributes(), os.Chmod(file, 0o644)},
		{"read what is hidden", l.Hides(), readable(filepath.Join(args[1], "hidden", "file"))},
		{"see other processes", l.EndsWhole(), seesOthers()},
	} {
		if forbidden.claimed && forbidden.err == nil {
			return report(fmt.Errorf("it could still %s outside", forbidden.what))
		}
	}
	return 0
}

func readable(path string) error {
	_, err := os.ReadFile(path)
	return err
}

// seesOthers fails in a PID namespace of its own, with its own /proc: there the
// first process is the parent of this one.
func seesOthers() error {
	first, err := os.Readlink("/proc/self")
	if err == nil && os.Getppid() == 1 && first == fmt.Sprint(os.Getpid()) {
		return errors.New("alone")
	}
	return nil
}
