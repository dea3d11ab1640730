package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
)

// ExitFailed is the exit code when the sandbox could not be made. The command
// did not run then, and standard error says why.
const ExitFailed = 125

// Confinement says what a command may do. It may read everything else.
type Confinement struct {
	// Write lists directories and files that may be written: the workspace,
	// caches, a private directory for temporary files.
	Write []string

	// Hidden lists directories and files that a command does not see, where
	// Level.Hides.
	Hidden []string
}

// order is what the supervisor hands to its own program, which enters the
// sandbox. It names paths, which are no secrets.
type order struct {
	Level  Level
	Write  []string
	Hidden []string
}

// The first arguments by which the program knows what it was started for.
const (
	enterArg = "@sandbox"       // then an order and a command
	innerArg = "@sandbox-inner" // the same, as the first process of its namespace
	tryArg   = "@sandbox-try"   // the command that Probe runs
)

// self is the program that runs now, even if its file was replaced since.
const self = "/proc/self/exe"

// Wrap turns a command into one that runs it under a Level that Probe found. It
// is this program again, which must call Main first.
//
// What may be written or is hidden must exist, by its true name: no part of it
// may be a link, since who can swap a link would choose what is written.
func Wrap(l Level, c Confinement, argv []string) ([]string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, &lockkeeper.InputError{Field: "command", Reason: "empty"}
	}
	if !l.On() {
		return slices.Clone(argv), nil
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], enterArg) {
		// It was started as a stage of a sandbox, and went on as if it were not: it would start
		// itself again and again.
		return nil, errors.New("sandbox: this program does not call sandbox.Main before anything else")
	}
	l.Missing = "" // for people
	o := order{Level: l}
	for _, path := range c.Hidden {
		if err := check("hidden", path); err != nil {
			return nil, err
		}
		o.Hidden = append(o.Hidden, path)
	}
	for _, path := range c.Write {
		if err := check("write", path); err != nil {
			return nil, err
		}
		for _, hidden := range c.Hidden {
			if within(path, hidden) {
				return nil, &lockkeeper.InputError{Field: "write", Value: path, Reason: "lies in " + hidden + ", which is hidden"}
			}
		}
		o.Write = append(o.Write, path)
	}
	o.Write, o.Hidden = outermost(o.Write), outermost(o.Hidden)
	return o.argv(enterArg, argv)
}

// argv starts this program again to carry out the order.
func (o order) argv(arg string, command []string) ([]string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return append([]string{self, arg, string(text)}, command...), nil
}

// check refuses a path that is not what its name says.
func check(field, path string) error {
	wrong := func(reason, next string) error {
		return &lockkeeper.InputError{Field: field, Value: path, Reason: reason, Next: next}
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return wrong("not a clean absolute path", "")
	}
	if path == "/" {
		return wrong("that is everything", "name the directories themselves")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return wrong(err.Error(), "make it first")
	}
	if real != path {
		return wrong("reached through a link", "name "+real+" if you trust that")
	}
	info, err := os.Lstat(path)
	if err != nil {
		return wrong(err.Error(), "make it first")
	}
	if field == "write" && !info.IsDir() && !info.Mode().IsRegular() {
		return wrong("neither a directory nor a file", "")
	}
	return nil
}

// within says whether path is dir or lies in it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// outermost drops what lies in another of the paths.
func outermost(paths []string) []string {
	slices.Sort(paths)
	var kept []string
	for _, path := range paths {
		if !slices.ContainsFunc(kept, func(dir string) bool { return within(path, dir) }) {
			kept = append(kept, path)
		}
	}
	return kept
}
