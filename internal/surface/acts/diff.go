package acts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project"
)

// diffLimit is the maximum size that is compared line by line.
const diffLimit = 8 << 20

// nothing is the name of a missing file in a diff.
const nothing = "/dev/null"

// FileDifference returns the diff of a file that a batch changed, from the stored original
// and result, or a note if it has none.
func FileDifference(tracker *progress.Tracker, unit, batch string, f flow.File) (text, note string, err error) {
	return difference(f, func(v lockkeeper.Version, _ bool) ([]byte, error) { return readSome(tracker.Kept(unit, batch, v.Sum)) })
}

// LandingDifference returns the diff of change n of a landing, or a note if it has none. The batch is the one
// that landed; its unit is empty if there is none.
func LandingDifference(ctx context.Context, a *project.Project, tracker *progress.Tracker, l *lockkeeper.Landing, n int, unit, batch string) (text, note string, err error) {
	g, err := a.Gate()
	if err != nil {
		return "", err.Error(), nil
	}
	c := l.Changes[n]
	if c.Old.Kind == lockkeeper.Dir || c.New.Kind == lockkeeper.Dir {
		return "", "a directory", nil
	}
	return difference(flow.File{Path: c.Path, Old: c.Old, New: c.New}, func(v lockkeeper.Version, after bool) ([]byte, error) {
		text, err := readSome(g.Content(ctx, l, n, after))
		if errors.Is(err, fs.ErrNotExist) && unit != "" {
			return readSome(tracker.Kept(unit, batch, v.Sum))
		}
		return text, err
	})
}

// difference returns the diff of a file, or a note if it has none. The function read returns the content of
// the old version or, with after, of the new one.
func difference(f flow.File, read func(v lockkeeper.Version, after bool) ([]byte, error)) (text, note string, err error) {
	content := func(v lockkeeper.Version, name string, after bool) ([]byte, string, error) {
		if !v.Exists() {
			return nil, nothing, nil
		}
		text, err := read(v, after)
		return text, name, err
	}
	was, from, err := content(f.Old, "a/"+f.Path, false)
	is, to, failed := content(f.New, "b/"+f.Path, true)
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
func readSome[F io.ReadCloser](f F, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, diffLimit+1))
	return text, errors.Join(err, f.Close())
}

// isBinary reports whether content is not text.
func isBinary(content []byte) bool { return bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) }
