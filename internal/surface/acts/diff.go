package acts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/rescue"
)

// diffLimit is the maximum size that is compared line by line.
const diffLimit = 8 << 20

// nothing is the name of a missing file in a diff.
const nothing = "/dev/null"

// FileDifference returns the diff of a file that a batch changed, from the stored original
// and result, or a note if it has none.
func FileDifference(tracker *progress.Tracker, unit, batch string, f flow.File) (text, note string, err error) {
	content := func(v lockkeeper.Version, name string) ([]byte, string, error) {
		if !v.Exists() {
			return nil, nothing, nil
		}
		text, err := readSome(tracker.Kept(unit, batch, v.Sum))
		return text, name, err
	}
	was, from, err := content(f.Old, "a/"+f.Path)
	is, to, failed := content(f.New, "b/"+f.Path)
	switch err := cmp.Or(err, failed); {
	case errors.Is(err, fs.ErrNotExist):
		return "", "its content is no longer kept", nil
	case err != nil:
		return "", "", err
	case len(was) > diffLimit || len(is) > diffLimit:
		return "", "too large to be shown as a diff", nil
	case isBinary(was) || isBinary(is):
		return "", "binary content", nil
	}
	return string(diff.Diff(from, was, to, is)), "", nil
}

// changeOf returns the diff of a gap, or "" if its content is not kept or not text.
func (d *Decider) changeOf(ctx context.Context, r progress.Ref) (string, error) {
	u, err := d.Tracker.Unit(ctx, r.Unit)
	if err != nil {
		return "", err
	}
	b, known := u.Batch(r.Batch)
	if !known {
		return "", nil // the answer to the decision reports the unknown batch
	}
	for _, g := range b.Gaps() {
		if g.Number != r.Gap || g.Rescue == "" {
			continue
		}
		e, err := d.App.Shelf().Get(g.Rescue)
		if lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
			return "", nil // a person dropped the entry meanwhile
		}
		if err != nil {
			return "", err
		}
		text, _, err := Difference(d.App, e)
		return text, err
	}
	return "", nil
}

// Difference returns the diff of a kept change, or a note if it has none. The content may
// be in place already, for example after an unlocked command. Then the diff is against the
// previous version of the file, if a session knows it.
func Difference(a *project.Project, e rescue.Entry) (text, note string, err error) {
	shelf := a.Shelf()
	content := shelf.ContentPath(e.ID)
	switch e.Kind {
	case rescue.Archive:
		return "", "an archive of many files; to list them: " + ListArchive(a, e), nil
	case rescue.Whole, rescue.Noted:
		where, err := readSome(shelf.Content(e.ID))
		return "", strings.TrimSpace(string(where)), err
	case rescue.Damaged:
		return "", "the remaining content is in " + content, nil
	}
	now, name := e.Path, e.Path
	there, err := readSome(os.OpenFile(filepath.Join(a.Root.Dir(), filepath.FromSlash(e.Path)), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now = nothing
	case err != nil:
		return "", "the current content of " + e.Path + " cannot be read: " + err.Error(), nil
	}
	var kept []byte
	switch {
	case e.Sum == "" && !e.Delete:
		return "", fmt.Sprintf("no content is kept; the change only sets the permissions %04o", e.Mode.Perm()), nil
	case e.Delete:
		name = nothing
	default:
		if kept, err = readSome(shelf.Content(e.ID)); err != nil {
			return "", "", err
		}
	}
	switch {
	case len(kept) > diffLimit || len(there) > diffLimit:
		return "", "too large to be shown as a diff; the content is in " + content, nil
	case isBinary(kept) || isBinary(there):
		return "", "binary content, SHA-256 " + e.Sum + "; it is in " + content, nil
	case bytes.Equal(kept, there):
		was := session.Copy(a, fmt.Sprintf("%x", e.Base.Sum))
		if was == nil || isBinary(was) || bytes.Equal(was, kept) {
			return "", "the file has this content already", nil
		}
		return string(diff.Diff(e.Path, was, name, kept)), "the file has this content already; the diff shows what it changed", nil
	}
	return string(diff.Diff(now, there, name, kept)), "", nil
}

// readSome reads a file, and at most one byte beyond the limit.
func readSome(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, diffLimit+1))
	return text, errors.Join(err, f.Close())
}

// isBinary reports whether content is not text.
func isBinary(content []byte) bool { return bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) }
