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

// A Difference is one path that differs from the last commit, in the work tree or in the
// index.
type Difference struct {
	Path   string // relative to the root; ends with a slash for a nested repository
	Staged *Blob  // nil if the work tree differs
	New    bool   // the last commit does not have the path
}

// A Blob is the staged content of a path.
type Blob struct {
	Mode string // mode in git's format; all zeros for a deletion
	ID   string
	Same bool // git sees the same content in the work tree
}

// These are the modes of entries.
const (
	ModeNothing    = "000000"
	modeFile       = "100644"
	modeExecutable = "100755"
)

// Differences lists the paths that differ from the last commit, or only the staged ones. A path
// with different content in the index and in the work tree is listed twice. It also lists the files
// that are missing in the index or in the work tree, whether or not that is staged.
func (g *WorkTree) Differences(ctx context.Context, stagedOnly bool) (list []Difference, gone []Gone, err error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, nil, err
	}
	untracked := "all"
	if stagedOnly {
		untracked = "no"
	}
	out, err := g.run(ctx, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files="+untracked)
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.SplitSeq(out, "\x00") {
		s, err := parseStatus(line)
		if err != nil {
			return nil, nil, g.refuse(err.Error(), "check its version with git --version; 2.18 or later is needed")
		}
		path, staged := s.path, s.staged
		rel, err := filepath.Rel(g.root, filepath.Join(top, path))
		if path == "" || err != nil || !filepath.IsLocal(rel) {
			continue // the path is in the repository, but not in the root
		}
		if strings.HasSuffix(path, "/") {
			rel += "/"
		}
		if staged != nil && staged.Mode == ModeNothing { // git reports a new file at the same path separately
			_, err := os.Lstat(filepath.Join(top, path))
			staged.Same = errors.Is(err, fs.ErrNotExist)
		}
		rel = filepath.ToSlash(rel)
		if s.gone && !s.isNew {
			gone = append(gone, Gone{Path: rel, mode: s.mode, id: s.id})
		}
		if staged != nil && (stagedOnly || !staged.Same) {
			list = append(list, Difference{Path: rel, Staged: staged, New: s.isNew})
		}
		if !stagedOnly && (staged == nil || staged.Same || staged.Mode != ModeNothing) {
			list = append(list, Difference{Path: rel, New: s.isNew})
		}
	}
	return list, gone, nil
}

// A statusLine is one line of git status --porcelain=v2. The path is empty if the line has no
// path. A path with an unresolved merge has nothing staged.
type statusLine struct {
	path     string
	staged   *Blob
	isNew    bool   // the last commit does not have the path
	gone     bool   // the index or the work tree does not have the path
	mode, id string // mode and id in the last commit
}

func parseStatus(line string) (s statusLine, err error) {
	kind, rest, _ := strings.Cut(line, " ")
	fields := map[string]int{"1": 8, "u": 10, "?": 1}[kind]
	parts := strings.SplitN(rest, " ", fields)
	switch {
	case line == "" || kind == "#" || kind == "!":
		return s, nil
	case fields == 0 || len(parts) < fields:
		return s, fmt.Errorf("git status printed an unknown line: %q", line)
	}
	s.path = parts[fields-1]
	s.isNew = kind == "?"
	if kind != "1" {
		return s, nil
	}
	state := parts[0]
	s.mode, s.id = parts[2], parts[5]
	s.isNew, s.gone = s.mode == ModeNothing, strings.Contains(state, "D")
	if state[0] != '.' {
		s.staged = &Blob{Mode: parts[3], ID: parts[6], Same: strings.HasSuffix(state, ".")}
	}
	return s, nil
}

// Has reports whether the staged content is a version, by the hash of its content. Git stores
// only the executable bit of the permissions.
func (b *Blob) Has(v lockkeeper.Version, sums map[string][sha256.Size]byte) bool {
	switch b.Mode {
	case ModeNothing:
		return !v.Exists()
	case modeFile, modeExecutable:
		sum, known := sums[b.ID]
		return known && v.Kind == lockkeeper.File && sum == v.Sum && (v.Mode&0o100 != 0) == (b.Mode == modeExecutable)
	}
	return false
}

// Sums returns the SHA-256 of the content of objects, as in a lockkeeper.Version.
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

// readObjects hashes the output of git cat-file --batch, which has for each object its id,
// kind and size, a newline, the content, and a newline.
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
			continue // git does not have the object
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
