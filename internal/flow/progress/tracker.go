package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/machine/filelock"
)

// Options configure a Tracker.
type Options struct {
	Documents *documents.Store // one folder for each unit
	Screens   *documents.Store // the documents of screens, in flows with screens
	Flow      flow.Flow        // the flow whose phases the units pass through
	Now       func() time.Time // time.Now if nil
}

// A Tracker reads and changes the state of the units of one flow. It caches nothing: every call
// reads the files.
type Tracker struct {
	documents *documents.Store
	screens   *documents.Store
	flow      flow.Flow
	now       func() time.Time
	seen      map[Ref]string // the versions that the acting person saw
}

// Open returns a Tracker. It accesses no file.
func Open(o Options) *Tracker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tracker{documents: o.Documents, screens: o.Screens, flow: o.Flow, now: o.Now}
}

// A Document records who wrote a document, when, and with which calls.
type Document struct {
	File      string      `json:"file"` // relative to the folder of the unit
	WrittenAt time.Time   `json:"written_at"`
	By        string      `json:"by"`
	Calls     []flow.Call `json:"calls,omitempty"`
}

// A Malformed is a document that counts as missing because its content is invalid.
type Malformed struct {
	Path   string `json:"path"` // relative to the directory of documents
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason"`
}

// A stored is a document as it was read, possibly missing. A replacement compares the document
// with it.
type stored struct {
	folder *documents.Folder
	name   string
	doc    *documents.Doc
	bad    *documents.MalformedError
}

// A loaded is a stored document with its value, nil if the document is missing or malformed.
type loaded[T any] struct {
	stored
	value *T
}

func (s stored) missing() bool { return s.doc == nil && s.bad == nil }

// since returns when the document was written. The next phase can start since then.
func (s stored) since() time.Time {
	if s.doc == nil {
		return time.Time{}
	}
	return s.doc.About.WrittenAt
}

// replace replaces the document if it has not changed since it was read. It first renames a
// malformed document.
func (s stored) replace(ctx context.Context, body any, about documents.About) error {
	if s.bad != nil {
		if _, err := s.folder.SetAside(ctx, s.name); err != nil {
			return err
		}
	}
	_, err := s.folder.Replace(ctx, s.doc, s.name, body, about)
	return err
}

func (s stored) remove(ctx context.Context) error {
	if s.doc == nil {
		return nil
	}
	return s.folder.Remove(ctx, s.doc, s.name)
}

func (b *Tracker) about(by string, calls ...flow.Call) (documents.About, error) {
	about := documents.About{WrittenAt: b.time(), By: by}
	for _, c := range calls {
		raw, err := json.Marshal(c)
		if err != nil {
			return about, err
		}
		about.Calls = append(about.Calls, raw)
	}
	return about, nil
}

// write replaces a document and records its author and the agent calls.
func (b *Tracker) write(ctx context.Context, was stored, body any, by string, calls ...flow.Call) error {
	about, err := b.about(by, calls...)
	if err != nil {
		return err
	}
	return was.replace(ctx, body, about)
}

// time returns the current time in the stored form.
func (b *Tracker) time() time.Time { return b.now().Round(0).UTC() }

// act carries out an act on a unit under the lock of its folder. Each write compares the stored
// document with the one that was read, so that no edit by hand is lost. If a file changed, act
// calls the function do again with the new state.
func (b *Tracker) act(ctx context.Context, unit string, do func(*Unit) error) (err error) {
	return b.actOn(ctx, unit, "", do)
}

// actOn does the same as act but reads only one batch.
func (b *Tracker) actOn(ctx context.Context, unit, batch string, do func(*Unit) error) (err error) {
	release, err := lockFolder(ctx, b.documents.Unit(unit).Dir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	return retryChanged(ctx, func() error {
		u, err := b.unit(ctx, unit, batch)
		if err != nil {
			return err
		}
		return do(u)
	})
}

// retryChanged repeats an attempt that reads and writes if a file changed in between. Each
// repetition means that another writer made progress.
func retryChanged(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		if _, ok := errors.AsType[*documents.ChangedError](err); !ok {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// personal does the same as act for a named person. It refuses the act if a decision changed
// since the person saw it.
func (b *Tracker) personal(ctx context.Context, unit, by string, do func(*Unit) error) error {
	if err := named(by); err != nil {
		return err
	}
	return b.act(ctx, unit, func(u *Unit) error {
		if err := b.checkSeen(u); err != nil {
			return err
		}
		return do(u)
	})
}

func named(by string) error {
	if strings.TrimSpace(by) == "" {
		return &lockkeeper.InputError{Field: "by", Value: by, Reason: "required", Next: "say who decides"}
	}
	return nil
}

// archive moves the document into earlier/.
func (s stored) archive(ctx context.Context) error {
	if s.bad != nil {
		_, err := s.folder.SetAside(ctx, s.name)
		return err
	}
	if err := s.keepCopy(ctx); err != nil {
		return err
	}
	return s.remove(ctx)
}

// keepCopy copies the document into earlier/<n>/ below its folder.
func (s stored) keepCopy(ctx context.Context) error {
	for n := 1; s.doc != nil; n++ {
		_, err := s.folder.Earlier(n).Replace(ctx, nil, s.name, s.doc.Body, s.doc.About)
		if _, ok := errors.AsType[*documents.ChangedError](err); !ok {
			return err
		}
	}
	return nil
}

func refused(act, next, reason string, args ...any) error {
	return &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf(reason, args...), Next: next}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// lockFolder waits for the exclusive lock on a folder, across processes. The kernel releases the
// lock when its process dies. A missing folder has no lock, but its first write still detects a
// conflict.
func lockFolder(ctx context.Context, dir string) (release func() error, err error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	taken, err := filelock.Await(ctx, f, func() { _ = f.Close() }) // the caller has returned, so the error has no receiver
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	case !taken:
		return nil, fmt.Errorf("another process holds the lock on %s: %w", dir, context.Cause(ctx))
	}
	return f.Close, nil
}
