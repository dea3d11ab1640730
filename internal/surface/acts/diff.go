package acts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
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
		fit, err := FitOf(ctx, d.App, e)
		return fit.Text, err
	}
	return "", nil
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
