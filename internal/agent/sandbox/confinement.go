package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/machine/overlay"
)

// ExitFailed is the exit code if the sandbox could not be made. In that case the command did not
// run, and standard error has the reason.
const ExitFailed = 125

// A Confinement lists the files that a command sees in addition to the system's own directories.
// It sees nothing else. Every path must exist and have no links in it.
type Confinement struct {
	// Write lists directories and files that the command may change.
	Write []string

	// Read lists directories, files and sockets that the command may use but not
	// change. A path of Read in a directory of Write is read-only with namespaces,
	// and writable with Landlock alone.
	Read []string

	// Scratch lists directories, such as caches, that the command may read and
	// write, and that keep their content.
	Scratch []Scratch

	// Places has other paths for some paths of Write and Overlays. With namespaces the
	// command finds the directory at the other path, and starts there.
	Places map[string]string

	// Overlays lists merged directories that the command sees. Only a Level with
	// namespaces can show them (Level.Overlays).
	Overlays []Overlay

	// Dir is the working directory of the command, if it exists only inside, such as
	// a directory in an overlay. If it is empty, the command has the directory in
	// which the wrapped command starts.
	Dir string

	// Private is a directory that the caller makes for this command and removes
	// afterwards. It holds the command's home directory and its /tmp. If it is
	// empty, both are in memory with namespaces, and missing with Landlock alone.
	Private string
}

// An Overlay shows a merged directory at a path. The command may change it if the stack has an
// Upper, and does not see the directories of the stack themselves. Nothing else may use Upper and
// Work while the command runs.
type Overlay struct {
	overlay.Stack
	Sub string // the directory in the merged directory that the command sees; "" for all
	At  string // an empty directory outside, where the command sees it
}

// A Scratch is a directory that the command may change for itself.
type Scratch struct {
	Path string // if it is missing, the command sees an empty directory

	// Below lists directories whose content the command sees where Path has none, the first one
	// first. Nothing may change them meanwhile.
	Below []string

	// Changes is an empty directory of the caller that keeps the changes, below upper. If it is
	// empty, they are discarded.
	Changes string

	// Rebuilt says that tools can make the content again. If the system has no overlays, the
	// command gets an empty directory to write to. Otherwise it can only read Path.
	Rebuilt bool
}

// An order is a checked Confinement with its Level, as Wrap passes it to the stages
// of the sandbox on their command lines. It has no secrets in it.
type order struct {
	Level Level
	Confinement
}

// These first arguments select the stage that the program runs.
const (
	enterArg = "@sandbox"       // followed by an order and a command
	innerArg = "@sandbox-inner" // like enterArg, for the first process of the namespaces
	tryArg   = "@sandbox-try"   // the command that Probe runs
)

// self is the path of the running program, even if its file has been replaced.
const self = "/proc/self/exe"

// Wrap turns a command into one that runs it under a Level that Probe found. The
// result starts this program again, so this program must call Main first.
//
// Wrap refuses a path that leads through a link: a process that can replace the link
// would choose what the command sees.
func Wrap(l Level, c Confinement, argv []string) ([]string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, &lockkeeper.InputError{Field: "command", Reason: "empty"}
	}
	if err := checkOverlays(l, c.Overlays); err != nil {
		return nil, err
	}
	if !l.On() {
		return slices.Clone(argv), nil
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], enterArg) {
		// This process is a stage of a sandbox. It would start itself endlessly.
		return nil, errors.New("sandbox: this program must call sandbox.Main before anything else")
	}
	scratch := outermostScratch(c.Scratch)
	for field, paths := range map[string][]string{"write": c.Write, "read": c.Read, "scratch": layersOf(c.Scratch)} {
		for _, path := range paths {
			if err := check(field, path); err != nil {
				return nil, err
			}
		}
	}
	l.Missing = "" // people read this text, and no stage needs it
	c.Write, c.Scratch = outermost(c.Write), scratch
	o := order{l, c}
	if err := o.prepare(); err != nil {
		return nil, err
	}
	return o.argv(enterArg, argv)
}

// prepare creates the directories in Private.
func (o order) prepare() error {
	if o.Private == "" {
		return nil
	}
	if err := check("private", o.Private); err != nil {
		return err
	}
	for dir, mode := range map[string]os.FileMode{o.privateHome(): 0o700, o.privateTemp(): 0o777 | os.ModeSticky, o.privateLayers(): 0o700} {
		if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("sandbox: %w", err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	return nil
}

func (o order) privateHome() string   { return filepath.Join(o.Private, "home") }
func (o order) privateTemp() string   { return filepath.Join(o.Private, "tmp") }
func (o order) privateLayers() string { return filepath.Join(o.Private, "layers") }

// argv returns the command line that starts this program again to carry out the order.
func (o order) argv(arg string, command []string) ([]string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	parts := []string{self, arg, fmt.Sprint((len(text) + longest - 1) / longest)}
	for part := range slices.Chunk(text, longest) {
		parts = append(parts, string(part))
	}
	return append(parts, command...), nil
}

// longest is the size of the parts in which an order is passed. The kernel limits one argument to
// 128 KiB.
const longest = 100 << 10

// readOrder reads the arguments that argv made, after the name of the stage.
func readOrder(args []string) (o order, command []string, err error) {
	parts := 0
	if len(args) > 0 {
		parts, err = strconv.Atoi(args[0])
	}
	if err != nil || parts < 1 || len(args) < parts+2 {
		return o, nil, errors.New("no command")
	}
	err = json.Unmarshal([]byte(strings.Join(args[1:parts+1], "")), &o)
	return o, args[parts+1:], err
}

// check refuses a path that is not clean and absolute, leads through a link, or has a type that
// the field does not accept.
func check(field, path string) error {
	wrong := func(reason, next string) error {
		return &lockkeeper.InputError{Field: field, Value: path, Reason: reason, Next: next}
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return wrong("not a clean absolute path", "")
	}
	if path == "/" {
		return wrong("the root directory contains everything", "list the directories that the command needs")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return wrong(err.Error(), "create it first")
	}
	if real != path {
		return wrong("reached through a link", "if you trust the link, use "+real)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return wrong(err.Error(), "create it first")
	}
	switch {
	case field == "write" && !info.IsDir() && !info.Mode().IsRegular():
		return wrong("neither a directory nor a file", "")
	case (field == "scratch" || field == "private" || field == "overlay") && !info.IsDir():
		return wrong("not a directory", "")
	}
	return nil
}

// checkOverlays refuses overlays that a Level cannot show, and paths where they cannot be shown. The
// directories of the stacks are checked when they are mounted.
func checkOverlays(l Level, list []Overlay) error {
	if len(list) > 0 && !l.Overlays() {
		return &lockkeeper.RefusedError{Act: "showing an overlay", Reason: fmt.Sprintf("it needs namespaces, and the sandbox has: %s", l)}
	}
	used := map[string]bool{}
	for _, v := range list {
		if err := check("overlay", v.At); err != nil {
			return err
		}
		if v.Sub != "" && !filepath.IsLocal(v.Sub) {
			return &lockkeeper.InputError{Field: "overlay", Value: v.Sub, Reason: "not inside the merged directory"}
		}
		if v.Upper != "" && used[v.Upper] {
			return &lockkeeper.InputError{Field: "overlay", Value: v.Upper, Reason: "the upper directory of two overlays"}
		}
		used[v.Upper] = true
	}
	return nil
}

// changesOverlays reports whether the command may change an overlay.
func (c Confinement) changesOverlays() bool {
	return slices.ContainsFunc(c.Overlays, func(v Overlay) bool { return v.Upper != "" })
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// outermost removes the paths that are inside another one.
func outermost(paths []string) []string {
	var kept []string
	for _, path := range slices.Sorted(slices.Values(paths)) {
		if !slices.ContainsFunc(kept, func(dir string) bool { return within(path, dir) }) {
			kept = append(kept, path)
		}
	}
	return kept
}

// layersOf lists the existing directories of scratch directories.
func layersOf(list []Scratch) (paths []string) {
	for _, s := range list {
		if s.exists() {
			paths = append(paths, s.Path)
		}
		paths = append(paths, s.Below...)
	}
	return paths
}

func (s Scratch) exists() bool {
	_, err := os.Lstat(s.Path)
	return err == nil
}

// outermostScratch removes the scratch directories that are inside another one.
func outermostScratch(list []Scratch) (kept []Scratch) {
	for _, s := range slices.SortedFunc(slices.Values(list), func(a, b Scratch) int { return strings.Compare(a.Path, b.Path) }) {
		if !slices.ContainsFunc(kept, func(k Scratch) bool { return within(s.Path, k.Path) }) {
			kept = append(kept, s)
		}
	}
	return kept
}
