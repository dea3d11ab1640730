package demo

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper"
	"lockkeeper/internal/surface/cli/term"
)

// photo is the content of all files of a small codebase, by path.
type photo map[string]photographed

type photographed struct {
	mode fs.FileMode
	text []byte
}

// photograph reads all files below a directory, except in folders whose names start with a dot.
func photograph(dir string) (photo, error) {
	all := photo{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		all[filepath.ToSlash(path)] = photographed{info.Mode().Perm(), text}
		return err
	})
	return all, err
}

// versions returns the files as versions, as in landings.
func (p photo) versions() map[string]lockkeeper.Version {
	all := map[string]lockkeeper.Version{}
	for path, f := range p {
		all[path] = lockkeeper.Version{Kind: lockkeeper.File, Mode: f.mode, Sum: sha256.Sum256(f.text)}
	}
	return all
}

// fileDiff is the change of one file.
type fileDiff struct {
	path           string
	added, removed int
	text           string
}

// diffOf compares two photographs, by path.
func (p photo) diffOf(now photo) (list []fileDiff) {
	for _, path := range slices.Sorted(maps.Keys(merged(p, now))) {
		old, new := p[path].text, now[path].text
		if bytes.Equal(old, new) {
			continue
		}
		d := fileDiff{path: path, text: string(diff.Diff("a/"+path, old, "b/"+path, new))}
		for line := range strings.Lines(d.hunks()) {
			switch line[0] {
			case '+':
				d.added++
			case '-':
				d.removed++
			}
		}
		list = append(list, d)
	}
	return list
}

// hunks returns the diff without its header.
func (d fileDiff) hunks() string {
	if i := strings.Index(d.text, "\n@@"); i >= 0 {
		return d.text[i+1:]
	}
	return d.text
}

// showDiff prints every changed line, file by file, and on request the context lines.
func (w *walk) showDiff(list []fileDiff, context bool) {
	added, removed := 0, 0
	for _, d := range list {
		added, removed = added+d.added, removed+d.removed
		fmt.Fprintf(w.to, "  %s  %s %s\n", w.paint(term.Bold, d.path), w.paint(term.Green, fmt.Sprintf("+%d", d.added)), w.paint(term.Red, fmt.Sprintf("-%d", d.removed)))
		for line := range strings.Lines(d.hunks()) {
			if context || line[0] == '+' || line[0] == '-' {
				w.diffLine(strings.TrimRight(line, "\n"))
			}
		}
	}
	fmt.Fprintf(w.to, "  %d files, %d lines added, %d removed\n", len(list), added, removed)
	if !context && len(list) > 0 {
		fmt.Fprintln(w.to, w.paint(term.Dim, "  (lockkeeper demo --diff also shows context lines)"))
	}
}

func (w *walk) diffLine(line string) {
	switch {
	case strings.HasPrefix(line, "+"):
		line = w.paint(term.Green, line)
	case strings.HasPrefix(line, "-"):
		line = w.paint(term.Red, line)
	case strings.HasPrefix(line, "@@"):
		line = w.paint(term.Dim, line)
	}
	fmt.Fprintln(w.to, "    "+line)
}
