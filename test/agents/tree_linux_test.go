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

// An entry has everything about a file that others can see, except its access time.
type entry struct {
	mode    fs.FileMode
	changed time.Time
	content string // for a link, its target
}

// readTree returns every entry below a directory.
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

// differences returns the paths at which two trees differ.
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
