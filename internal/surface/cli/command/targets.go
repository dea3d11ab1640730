package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/term"
)

// Targets are the paths a command names, by mode.
type Targets struct {
	read, write, Upgradeable []string
	readFrom, writeFrom      []string
}

// Flags adds the flags that name paths.
func (t *Targets) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&t.read, "read", nil, "a `path` to read; repeatable")
	f.StringArrayVar(&t.write, "write", nil, "a `path` to write; repeatable")
	f.StringArrayVar(&t.readFrom, "read-from", nil, "a `file` with paths to read, one per line or separated by NUL; - is standard input")
	f.StringArrayVar(&t.writeFrom, "write-from", nil, "a `file` with paths to write, one per line or separated by NUL; - is standard input")
}

// Resolve returns the locks for all paths, or an error if one path is invalid.
func (t *Targets) Resolve(p *Program, a *project.Project) ([]lockkeeper.Lock, error) {
	lists := slices.Concat(t.readFrom, t.writeFrom)
	if i := slices.Index(lists, "-"); i >= 0 && slices.Contains(lists[i+1:], "-") {
		return nil, &lockkeeper.InputError{Field: "file of paths", Value: "-", Reason: "standard input can be read only once", Next: "give one of the lists as a file"}
	}
	var locks []lockkeeper.Lock
	add := func(mode lockkeeper.Mode, path string) error {
		if len(locks) >= lockkeeper.MaxTargets {
			return &lockkeeper.InputError{Field: "targets", Value: fmt.Sprintf("more than %d", lockkeeper.MaxTargets),
				Reason: fmt.Sprintf("over the limit of %d", lockkeeper.MaxTargets), Next: "split the work, or lock a directory for reading"}
		}
		l, err := a.Resolve(mode, path)
		locks = append(locks, l)
		return err
	}
	for _, given := range []struct {
		mode  lockkeeper.Mode
		paths []string
		files []string
	}{
		{lockkeeper.Read, t.read, t.readFrom},
		{lockkeeper.Upgradeable, t.Upgradeable, nil},
		{lockkeeper.Write, t.write, t.writeFrom},
	} {
		for _, path := range given.paths {
			if err := add(given.mode, path); err != nil {
				return nil, err
			}
		}
		for _, file := range given.files {
			if err := p.eachPath(file, func(path string) error { return add(given.mode, path) }); err != nil {
				return nil, err
			}
		}
	}
	return locks, nil
}

// listLimit is more than the size of the largest request.
const listLimit = lockkeeper.MaxTargets * (lockkeeper.MaxPathSize + 1)

// eachPath visits the paths in a file or on standard input. They are separated by NUL bytes
// if there is one, and by newlines otherwise. All other bytes belong to the path.
func (p *Program) eachPath(name string, visit func(string) error) error {
	text, err := p.readList(name)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return &lockkeeper.InputError{Field: "file of paths", Value: name, Reason: err.Error(), Next: "name a file you may read, or - for standard input"}
	}
	end := "\n"
	if strings.Contains(text, "\x00") {
		end = "\x00"
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(text, end), end) {
		if text == "" {
			break
		}
		if end == "\n" && strings.HasSuffix(path, "\r") {
			return &lockkeeper.InputError{Field: "path", Value: path, Reason: "it ends with a carriage return",
				Next: "end the lines of " + name + " with a newline only; if the name contains it, separate the list with NUL"}
		}
		if err := visit(path); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) readList(name string) (string, error) {
	from := p.In
	if name != "-" {
		f, err := os.Open(p.Path(name))
		if err != nil {
			return "", err
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, listLimit+1))
	if err == nil && len(text) > listLimit {
		err = fmt.Errorf("over the limit of %d paths", lockkeeper.MaxTargets)
	}
	return string(text), err
}

// notesShown is how many paths of one request get a note.
const notesShown = 8

// Notes warns about paths that may be mistakes: a new file in a missing directory, and a
// pattern that the shell did not expand.
func (p *Program) Notes(a *project.Project, locks []lockkeeper.Lock) {
	if p.JSON {
		return
	}
	missing := func(path string) bool {
		_, err := os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(path)))
		return errors.Is(err, fs.ErrNotExist)
	}
	shown := 0
	for _, l := range locks {
		pattern := strings.ContainsAny(l.Path, "*?[")
		if !pattern && l.Mode != lockkeeper.Write || !missing(l.Path) {
			continue
		}
		note := " is taken literally; nothing of that name exists"
		if !pattern {
			if parent, _ := lockkeeper.Parent(l.Path); !missing(parent) {
				continue
			}
			note = " does not exist yet, nor does its directory"
		}
		if shown++; shown > notesShown {
			fmt.Fprintln(p.Err, "note: and more such paths")
			return
		}
		fmt.Fprintf(p.Err, "note: %s%s\n", term.Clean(l.Path), note)
	}
}
