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

func (t *Targets) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&t.read, "read", nil, "a `path` to read; repeatable")
	f.StringArrayVar(&t.write, "write", nil, "a `path` to write; repeatable")
	f.StringArrayVar(&t.readFrom, "read-from", nil, "a `file` with paths to read, one to a line or separated by NUL; - is standard input")
	f.StringArrayVar(&t.writeFrom, "write-from", nil, "a `file` with paths to write, one to a line or separated by NUL; - is standard input")
}

// Resolve makes locks of all paths. One that is wrong refuses them all.
func (t *Targets) Resolve(p *Program, a *project.Project) ([]lockkeeper.Lock, error) {
	lists := slices.Concat(t.readFrom, t.writeFrom)
	if i := slices.Index(lists, "-"); i >= 0 && slices.Contains(lists[i+1:], "-") {
		return nil, &lockkeeper.InputError{Field: "file of paths", Value: "-", Reason: "standard input can be read once only", Next: "give one of the lists as a file"}
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

// listLimit is more than the largest request spelled out.
const listLimit = lockkeeper.MaxTargets * (lockkeeper.MaxPathSize + 1)

// eachPath reads paths from a file or standard input: separated by NUL bytes
// when there is one, one to a line otherwise. Whatever else a path contains is
// part of it.
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
				Next: "end the lines of " + name + " with a newline alone; a name that really ends so goes into a list separated by NUL"}
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
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.Base(), path)
		}
		f, err := os.Open(path)
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

// notesShown is how many paths of one request are remarked upon.
const notesShown = 8

// Notes tells what was perhaps not meant: a new file in a directory that is not
// there, and a pattern that the shell did not expand.
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
