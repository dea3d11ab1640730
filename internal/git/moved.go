package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Gone is a file of the last commit that is missing in the index or in the work tree.
type Gone struct {
	Path     string // relative to the root
	mode, id string // mode and id in the last commit
}

// Moved finds the new files that have the content, or most of it, of a missing file, as git finds
// renames and copies. The result has the path of the missing file for the path of each such file.
// The files are compared as if there were no others, so it does not matter which of them are in the
// index.
func (g *WorkTree) Moved(ctx context.Context, gone []Gone, differences []Difference) (map[string]string, error) {
	moved := map[string]string{}
	if len(gone) == 0 {
		return moved, nil
	}
	below, err := g.below(ctx)
	if err != nil {
		return nil, err
	}
	var missing, staged, inTree []string // entries for an index
	for _, f := range gone {
		missing = append(missing, entryLine(f.mode, f.id, below+f.Path))
	}
	for _, d := range differences {
		switch {
		case !d.New || strings.HasSuffix(d.Path, "/"):
		case d.Staged == nil: // git reads the file, because its entry has no time
			inTree = append(inTree, entryLine(modeFile, gone[0].id, below+d.Path))
		case d.Staged.Mode != ModeNothing:
			staged = append(staged, entryLine(d.Staged.Mode, d.Staged.ID, below+d.Path))
		}
	}
	if len(staged)+len(inTree) == 0 {
		return moved, nil
	}
	own, err := g.beside(ctx)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(own.dir) // the system removes what remains of temporary files
	if err := own.index(ctx, missing); err != nil {
		return nil, err
	}
	before, err := own.run(ctx, "write-tree", "--missing-ok")
	if err != nil {
		return nil, err
	}
	for _, look := range []struct {
		entries []string
		options []string
	}{{staged, []string{"--cached"}}, {inTree, nil}} {
		if len(look.entries) == 0 {
			continue
		}
		if err := own.index(ctx, look.entries); err != nil {
			return nil, err
		}
		args := append([]string{"diff-index", "-z", "--find-copies", "-l32767", "--no-rename-empty", "--diff-filter=RC", "--name-status"}, look.options...)
		out, err := own.run(ctx, append(args, strings.TrimSpace(before))...)
		if err != nil {
			return nil, err
		}
		for names := fields(out); len(names) >= 3; names = names[3:] { // a status such as R100 or C100, the old name, the new name
			moved[strings.TrimPrefix(names[2], below)] = strings.TrimPrefix(names[1], below)
		}
	}
	return moved, nil
}

// below returns the path from the top of the work tree to the root, with a slash at its end, or "".
func (g *WorkTree) below(ctx context.Context) (string, error) {
	top, err := g.top(ctx)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(top, g.root)
	if err != nil || rel == "." {
		return "", err
	}
	return filepath.ToSlash(rel) + "/", nil
}

// entryLine returns an entry in the format of git update-index --index-info.
func entryLine(mode, id, path string) string { return mode + " " + id + "\t" + path }

// A scratchTree is a work tree with indexes and a store of objects of its own, in a temporary
// directory. It also reads the objects of the repository.
type scratchTree struct {
	WorkTree
	dir     string
	indexes int
}

func (g *WorkTree) beside(ctx context.Context) (b *scratchTree, err error) {
	objects, err := g.run(ctx, "rev-parse", "--git-path", "objects")
	if err != nil {
		return nil, err
	}
	from := strings.TrimSuffix(objects, "\n")
	if !filepath.IsAbs(from) {
		from = filepath.Join(g.git.Dir, from)
	}
	b = &scratchTree{WorkTree: *g}
	b.git.Settings = slices.Concat(b.git.Settings, []string{"-c", "core.splitIndex=false", "-c", "core.untrackedCache=false"})
	b.dir, err = os.MkdirTemp("", "lockkeeper-git-")
	b.git.Env = slices.Concat(b.git.Env, []string{"GIT_OBJECT_DIRECTORY=" + b.dir, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoted(from)})
	return b, err
}

// quoted quotes a path for a list of git, so that it may contain colons.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// index makes a new index of these entries.
func (b *scratchTree) index(ctx context.Context, entries []string) error {
	b.indexes++
	b.git.Env = append(b.git.Env, "GIT_INDEX_FILE="+filepath.Join(b.dir, "index"+strconv.Itoa(b.indexes)))
	return b.pipe(ctx, strings.NewReader(list(entries)), nil, "update-index", "-z", "--index-info")
}
