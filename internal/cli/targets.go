package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/app"
)

// targets are the paths a command names, by mode.
type targets struct {
	read, write, upgradeable []string
	readFrom, writeFrom      []string
}

func (t *targets) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&t.read, "read", nil, "a `path` to read; repeatable")
	f.StringArrayVar(&t.write, "write", nil, "a `path` to write; repeatable")
	f.StringArrayVar(&t.readFrom, "read-from", nil, "a `file` with paths to read, one to a line; - is standard input")
	f.StringArrayVar(&t.writeFrom, "write-from", nil, "a `file` with paths to write, one to a line; - is standard input")
}

// resolve makes locks of all paths. One that is wrong refuses them all.
func (t *targets) resolve(p *program, a *app.App) ([]lockkeeper.Lock, error) {
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
		{lockkeeper.Upgradeable, t.upgradeable, nil},
		{lockkeeper.Write, t.write, t.writeFrom},
	} {
		for _, path := range given.paths {
			if err := add(given.mode, path); err != nil {
				return nil, err
			}
		}
		for _, file := range given.files {
			if err := p.eachLine(file, func(path string) error { return add(given.mode, path) }); err != nil {
				return nil, err
			}
		}
	}
	return locks, nil
}

// eachLine reads paths from a file or standard input. Lines end with a newline
// alone: whatever else a path contains is part of it.
func (p *program) eachLine(name string, visit func(string) error) error {
	from := p.In
	if name != "-" {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.base(), path)
		}
		f, err := os.Open(path)
		if err != nil {
			var at *fs.PathError
			if errors.As(err, &at) {
				err = at.Err
			}
			return &lockkeeper.InputError{Field: "file of paths", Value: name, Reason: err.Error(), Next: "name a file you may read, or - for standard input"}
		}
		defer f.Close()
		from = f
	}
	// One byte more than a path may have, so that the resolver refuses it, not
	// the reader.
	lines := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return &lockkeeper.InputError{Field: "path", Value: string(line[:200]), Reason: fmt.Sprintf("path over the limit of %d bytes", lockkeeper.MaxPathSize), Next: "give a shorter path"}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return &lockkeeper.InputError{Field: "file of paths", Value: name, Reason: err.Error(), Next: "name a file you may read, or - for standard input"}
		}
		if len(line) == 0 {
			return nil
		}
		if visitErr := visit(strings.TrimSuffix(string(line), "\n")); visitErr != nil {
			return visitErr
		}
		if err != nil {
			return nil
		}
	}
}
