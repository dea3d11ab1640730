//go:build agents

package agents_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// entry is all of a file that others can see, except when it was read.
type entry struct {
	mode    fs.FileMode
	changed time.Time
	content string // of a link: where it leads
}

// readTree reads everything below a directory.
func readTree(t *testing.T, root string) map[string]entry {
	t.Helper()
	tree := map[string]entry{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{mode: info.Mode(), changed: info.ModTime()}
		var content []byte
		switch {
		case info.Mode().IsRegular():
			content, err = os.ReadFile(path)
			e.content = string(content)
		case info.Mode().Type() == fs.ModeSymlink:
			e.content, err = os.Readlink(path)
		}
		tree[path[len(root)+1:]] = e
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// differences lists the paths in which two trees differ.
func differences(before, after map[string]entry) (list []string) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for path := range all {
		if before[path] != after[path] {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}
