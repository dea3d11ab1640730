package git

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper"
)

// A Difference is one path that differs from git's last commit: in the work tree, or
// as it is staged for the next commit.
type Difference struct {
	Path   string // from the root; of a nested repository it ends with a slash
	Staged *Blob  // nil: in the work tree
}

// A Blob is what is staged at a path.
type Blob struct {
	Mode string // as git spells it; of a deletion all zeros
	ID   string
	Same bool // the work tree has it, too, as far as git can tell
}

// The modes of what git keeps.
const (
	ModeNothing    = "000000"
	modeFile       = "100644"
	modeExecutable = "100755"
)

// Differences lists what differs from the last commit: what is staged, or all of it.
// Of a path that is staged in one state and has another one in the work tree, both
// are changes.
func (g *WorkTree) Differences(ctx context.Context, stagedOnly bool) ([]Difference, error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, err
	}
	untracked := "all"
	if stagedOnly {
		untracked = "no"
	}
	out, err := g.run(ctx, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files="+untracked)
	if err != nil {
		return nil, err
	}
	var list []Difference
	for line := range strings.SplitSeq(out, "\x00") {
		path, staged, err := parseStatus(line)
		if err != nil {
			return nil, g.refuse(err.Error(), "check its version with git --version; 2.18 or later is needed")
		}
		rel, err := filepath.Rel(g.root, filepath.Join(top, path))
		if path == "" || err != nil || !filepath.IsLocal(rel) {
			continue // in the repository, and not in the root
		}
		if strings.HasSuffix(path, "/") {
			rel += "/"
		}
		if staged != nil && staged.Mode == ModeNothing { // what is in its place counts as new for git
			_, err := os.Lstat(filepath.Join(top, path))
			staged.Same = errors.Is(err, fs.ErrNotExist)
		}
		rel = filepath.ToSlash(rel)
		if staged != nil && (stagedOnly || !staged.Same) {
			list = append(list, Difference{Path: rel, Staged: staged})
		}
		if !stagedOnly && (staged == nil || staged.Same || staged.Mode != ModeNothing) {
			list = append(list, Difference{Path: rel})
		}
	}
	return list, nil
}

// parseStatus reads a line of git status in its second form; no path: it is about
// none. Nothing is staged of a path that waits for a merge to be resolved.
func parseStatus(line string) (path string, staged *Blob, err error) {
	kind, rest, _ := strings.Cut(line, " ")
	fields := map[string]int{"1": 8, "u": 10, "?": 1}[kind]
	parts := strings.SplitN(rest, " ", fields)
	switch {
	case line == "" || kind == "#" || kind == "!":
		return "", nil, nil
	case fields == 0 || len(parts) < fields:
		return "", nil, fmt.Errorf("git status answers with what is not understood: %q", line)
	}
	path = parts[fields-1]
	if state := parts[0]; kind == "1" && state[0] != '.' {
		staged = &Blob{Mode: parts[3], ID: parts[6], Same: strings.HasSuffix(state, ".")}
	}
	return path, staged, nil
}

// IsLeft reports whether a landing left what is staged, going by the sum of its
// content. Git knows no more of permissions than whether a file can be executed.
func (b *Blob) IsLeft(v lockkeeper.Version, sums map[string][sha256.Size]byte) bool {
	switch b.Mode {
	case ModeNothing:
		return !v.Exists()
	case modeFile, modeExecutable:
		sum, known := sums[b.ID]
		return known && v.Kind == lockkeeper.File && sum == v.Sum && (v.Mode&0o100 != 0) == (b.Mode == modeExecutable)
	}
	return false
}

// Sums hashes the content of objects as landings do.
func (g *WorkTree) Sums(ctx context.Context, ids []string) (map[string][sha256.Size]byte, error) {
	found := map[string][sha256.Size]byte{}
	if len(ids) == 0 {
		return found, nil
	}
	from, to := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := readObjects(from, found)
		from.CloseWithError(err)
		read <- err
	}()
	err := g.pipe(ctx, strings.NewReader(strings.Join(ids, "\n")+"\n"), to, "cat-file", "--batch")
	to.Close() // never fails
	if cut := <-read; err == nil {
		err = cut
	}
	return found, err
}

// readObjects sums up what cat-file --batch writes: of each object its id, kind
// and size, a newline, the content, and a newline.
func readObjects(from io.Reader, found map[string][sha256.Size]byte) error {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadString('\n')
		if err == io.EOF && line == "" {
			return nil
		}
		if err != nil {
			return err
		}
		var id, kind string
		var size int64
		if n, _ := fmt.Sscanf(line, "%s %s %d", &id, &kind, &size); n < 3 {
			continue // git does not have it
		}
		sum := sha256.New()
		if _, err := io.CopyN(sum, r, size); err != nil {
			return err
		}
		if _, err := r.Discard(len("\n")); err != nil {
			return err
		}
		found[id] = [sha256.Size]byte(sum.Sum(nil))
	}
}
