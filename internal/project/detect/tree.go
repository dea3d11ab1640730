package detect

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/git/gitcmd"
	"lockkeeper/internal/project/generated"
)

const (
	mostFiles = 200_000 // names that are looked at
	mostText  = 256 << 10
)

// A tree has the names of a codebase's files, with slashes, relative to its root.
type tree struct {
	root    string
	names   []string
	set     map[string]bool
	ignored []string // files and directories that git ignores, and generated ones
	env     func(string) (string, bool)
}

// openTree lists the files of a directory: those that git does not ignore, or all without git.
func openTree(ctx context.Context, root string, env func(string) (string, bool), environ []string) (*tree, error) {
	t := &tree{root: root, set: map[string]bool{}, env: env}
	git := gitcmd.Command{Dir: root, Env: environ}
	if _, missing := exec.LookPath("git"); missing == nil && git.Run(ctx, nil, io.Discard, "rev-parse", "--is-inside-work-tree") == nil {
		var list, ignored bytes.Buffer
		if err := git.Run(ctx, nil, &list, "ls-files", "-z", "--cached", "--others", "--exclude-standard"); err != nil {
			return nil, err
		}
		if err := git.Run(ctx, nil, &ignored, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"); err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(list.String(), "\x00") {
			t.add(name)
		}
		for name := range strings.SplitSeq(ignored.String(), "\x00") {
			if name != "" && len(t.ignored) < mostFiles {
				t.ignored = append(t.ignored, name)
			}
		}
	} else if err := t.walk(); err != nil {
		return nil, err
	}
	slices.Sort(t.names)
	return t, nil
}

// walk lists the files of a tree without git.
func (t *tree) walk() error {
	return filepath.WalkDir(t.root, func(at string, e fs.DirEntry, err error) error {
		name, wrong := filepath.Rel(t.root, at)
		name = filepath.ToSlash(name)
		switch {
		case err != nil || wrong != nil:
			return fs.SkipDir // what cannot be read is no part of the proposal
		case len(t.names) >= mostFiles:
			return fs.SkipAll
		case e.IsDir() && name != "." && (generated.Contains(name) || e.Name() == ".git"):
			t.ignored = append(t.ignored, name+"/")
			return fs.SkipDir
		case !e.IsDir():
			t.add(name)
		}
		return nil
	})
}

func (t *tree) add(name string) {
	if name == "" || len(t.names) >= mostFiles || isOwn(name) {
		return
	}
	t.names = append(t.names, name)
	t.set[name] = true
}

// isOwn reports whether a file belongs to Lockkeeper.
func isOwn(name string) bool {
	return name == "lockkeeper.yaml" || strings.HasPrefix(name, ".lockkeeper/")
}

// isFixture reports whether a path is input of tests, whose manifests belong to no project.
func isFixture(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if slices.Contains([]string{"testdata", "fixtures", "__fixtures__", "examples", "templates"}, part) {
			return true
		}
	}
	return generated.Contains(name)
}

func (t *tree) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return t.set[name] })
}

// hasBelow reports whether a file is in a directory; "" is the root.
func (t *tree) hasBelow(dir string) bool {
	i, _ := slices.BinarySearch(t.names, dir+"/")
	return dir == "" && len(t.names) > 0 || i < len(t.names) && strings.HasPrefix(t.names[i], dir+"/")
}

// read returns the first part of a file, or "" if it cannot be read.
func (t *tree) read(name string) string {
	if name == "" || !t.set[name] {
		return ""
	}
	f, err := os.Open(filepath.Join(t.root, filepath.FromSlash(name)))
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, mostText))
	if err != nil {
		return ""
	}
	return string(text)
}

// exists reports whether a path exists on disk, also if git ignores it.
func (t *tree) exists(name string) bool {
	_, err := os.Stat(filepath.Join(t.root, filepath.FromSlash(name)))
	return err == nil
}

// isProgram reports whether a path of the codebase is a program.
func (t *tree) isProgram(name string) bool {
	info, err := os.Stat(filepath.Join(t.root, filepath.FromSlash(name)))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// installed reports whether a program is in PATH.
func (t *tree) installed(program string) bool {
	list, _ := t.env("PATH")
	for _, dir := range filepath.SplitList(list) {
		info, err := os.Stat(filepath.Join(dir, program))
		if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
