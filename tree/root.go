package tree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// A Root is the open root directory of a space. It stays the same directory when
// its path is renamed or replaced.
type Root struct {
	path string // real and absolute
	file *os.File
	info fs.FileInfo // stat of file, to recognize the root from outside
	self fileStat    // stat of file, to recognize its device

	// folds reports whether names in the open directory fd fold case.
	folds func(fd int) (bool, error)
}

// Open opens the root directory of a space. dir may be any path to it,
// including through symlinks.
func Open(dir string) (*Root, error) {
	refused := func(err error) error {
		return &lockkeeper.InputError{Field: "root", Value: dir, Reason: reasonOf(err),
			Next: "use an existing, readable directory"}
	}
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, refused(err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, refused(err)
	}
	r := &Root{path: path, file: file}
	if err := r.identify(); err != nil {
		file.Close()
		return nil, refused(err)
	}
	return r, nil
}

func (r *Root) identify() (err error) {
	if r.info, err = r.file.Stat(); err != nil {
		return err
	}
	if !r.info.IsDir() {
		return fmt.Errorf("not a directory")
	}
	return r.withFD(func(fd int) error {
		if r.self, err = statFD(fd); err != nil {
			return err
		}
		whole, err := diskFolds(fd)
		if err != nil {
			return err
		}
		r.folds = func(fd int) (bool, error) {
			if whole {
				return true, nil
			}
			return dirFolds(fd)
		}
		return nil
	})
}

// withFD calls the function do with the root's descriptor, which Close cannot close meanwhile.
func (r *Root) withFD(do func(fd int) error) error {
	conn, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := conn.Control(func(fd uintptr) { result = do(int(fd)) }); err != nil {
		return fmt.Errorf("root %s: %w", r.path, os.ErrClosed)
	}
	return result
}

// Handle opens the root directory again, whatever is now at its path. The caller
// must close it.
func (r *Root) Handle() (f *os.File, err error) {
	err = r.withFD(func(fd int) error {
		again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			f = os.NewFile(uintptr(again), r.path)
		}
		return err
	})
	return f, err
}

// Dir returns the real absolute path that the root had when it was opened.
func (r *Root) Dir() string { return r.path }

// Close closes the root directory.
func (r *Root) Close() error { return r.file.Close() }

// Resolve returns the lock for a spelling of a path. A relative spelling is relative
// to base, an absolute path, if base is in the root. Otherwise it is relative to the
// root, for commands that were started elsewhere.
func (r *Root) Resolve(base, spelling string, mode lockkeeper.Mode) (lockkeeper.Lock, error) {
	if _, err := lockkeeper.ParseMode(mode.String()); err != nil {
		return lockkeeper.Lock{}, err
	}
	if err := checkSpelling(spelling); err != nil {
		return lockkeeper.Lock{}, err
	}
	segs, mustDir := segments(spelling)
	if filepath.IsAbs(spelling) {
		below, inside, err := r.locate(spelling)
		if err != nil {
			return lockkeeper.Lock{}, explain(spelling, err)
		}
		if !inside {
			return lockkeeper.Lock{}, refuse(spelling, "absolute path outside the root "+r.path,
				"use a path relative to the root")
		}
		segs = below
	} else if base != "" {
		above, err := r.base(base)
		if err != nil {
			return lockkeeper.Lock{}, err
		}
		segs = slices.Concat(above, segs)
	}
	w := walk{root: r, spelling: spelling, mode: mode, segs: segs, mustDir: mustDir}
	var target lockkeeper.Target
	err := r.withFD(func(fd int) (err error) {
		target, err = w.run(fd)
		return err
	})
	if err == nil {
		err = target.Validate()
	}
	if err != nil {
		return lockkeeper.Lock{}, err
	}
	return lockkeeper.Lock{Target: target, Mode: mode}, nil
}

// base returns the segments from the root to base, or none if it is elsewhere.
func (r *Root) base(base string) ([]string, error) {
	if !filepath.IsAbs(base) {
		return nil, &lockkeeper.InputError{Field: "base", Value: base, Reason: "not an absolute path",
			Next: "use the absolute path of the working directory"}
	}
	segs, inside, err := r.locate(base)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", explain(base, err))
	}
	if !inside {
		return nil, nil
	}
	return segs, nil
}

func refuse(spelling, reason, next string) error {
	return &lockkeeper.InputError{Field: "path", Value: spelling, Reason: reason, Next: next}
}

// checkSpelling refuses spellings that are invalid on every disk.
func checkSpelling(s string) error {
	switch {
	case s == "":
		return refuse(s, "empty path", `name a file; "." is the whole root`)
	case len(s) > lockkeeper.MaxPathSize:
		return refuse(s, fmt.Sprintf("path of %d bytes, over the limit of %d", len(s), lockkeeper.MaxPathSize), "use a shorter path")
	case strings.IndexByte(s, 0) >= 0:
		return refuse(s, "NUL byte in path", "remove it")
	case !utf8.ValidString(s):
		return refuse(s, "path is not valid UTF-8", "rename the file")
	}
	for seg := range strings.SplitSeq(s, "/") {
		if seg == ".." {
			// A path with .. is refused even if it stays inside the root, because behind a symlink
			// a/.. is ambiguous.
			return refuse(s, "path with ..", "use a path relative to the root, from the root directory, or an absolute path")
		}
	}
	return nil
}

// segments splits a path into its names, without empty ones and dots. mustDir says
// that the spelling can only mean a directory.
func segments(path string) (segs []string, mustDir bool) {
	segs = make([]string, 0, strings.Count(path, "/")+1)
	last := ""
	for seg := range strings.SplitSeq(path, "/") {
		if last = seg; seg != "" && seg != "." {
			segs = append(segs, seg)
		}
	}
	return segs, last == "" || last == "."
}
