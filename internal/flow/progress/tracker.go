package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/sidecar"
)

// Options are what a Tracker is made of.
type Options struct {
	Sidecar *sidecar.Store   // one folder for each unit
	Screens *sidecar.Store   // what is known of screens; only the flow of screens has it
	Flow    flow.Flow        // the phases that units go through
	Now     func() time.Time // time.Now if nil
}

// Tracker is what is known of the units of one flow. It keeps nothing itself: every call
// reads the files.
type Tracker struct {
	sidecar *sidecar.Store
	screens *sidecar.Store
	flow    flow.Flow
	now     func() time.Time
	seen    map[Ref]string // what the person saw whose act this is for
}

// Open makes a Tracker. Nothing is read or made.
func Open(o Options) *Tracker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tracker{sidecar: o.Sidecar, screens: o.Screens, flow: o.Flow, now: o.Now}
}

// A Document is what is known of how a document came to be.
type Document struct {
	File      string      `json:"file"` // from the folder of the unit
	WrittenAt time.Time   `json:"written_at"`
	By        string      `json:"by"`
	Calls     []flow.Call `json:"calls,omitempty"`
}

// Malformed is a document that counts as missing because of what is in it.
type Malformed struct {
	Path   string `json:"path"` // from the sidecar directory
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason"`
}

// A loaded value is a document as it was read: its value, and what has to be there still
// when it is replaced.
type loaded[T any] struct {
	value *T
	doc   *sidecar.Doc
	bad   *sidecar.MalformedError
}

func (s loaded[T]) missing() bool { return s.doc == nil && s.bad == nil }

// replace puts a document in the place of what was read. A malformed one is kept aside
// first.
func replace(ctx context.Context, f *sidecar.Folder, was *sidecar.Doc, bad *sidecar.MalformedError, name string, body any, about sidecar.About) error {
	if bad != nil {
		if _, err := f.SetAside(ctx, name); err != nil {
			return err
		}
	}
	_, err := f.Replace(ctx, was, name, body, about)
	return err
}

// about says who writes a document now, and what was paid for it.
func (b *Tracker) about(by string, calls ...flow.Call) (sidecar.About, error) {
	about := sidecar.About{WrittenAt: b.time(), By: by}
	for _, c := range calls {
		raw, err := json.Marshal(c)
		if err != nil {
			return about, err
		}
		about.Calls = append(about.Calls, raw)
	}
	return about, nil
}

// time is now, as it can be stored and read again.
func (b *Tracker) time() time.Time { return b.now().Round(0).UTC() }

// act carries out an act on a unit. Acts on one unit take turns, in whichever process,
// so one that is several writes is not mixed with another; and what each write replaces
// is compared with what was read, so that nobody's edit of the files is lost either: then
// do is called again with what is there now.
func (b *Tracker) act(ctx context.Context, unit string, do func(*Unit) error) (err error) {
	return b.actOn(ctx, unit, "", do)
}

// actOn is act for what concerns one batch.
func (b *Tracker) actOn(ctx context.Context, unit, batch string, do func(*Unit) error) (err error) {
	release, err := lockFolder(ctx, b.sidecar.Unit(unit).Dir())
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

// retryChanged carries out what reads, judges and writes, and does so again while somebody else
// was faster, who then has got on.
func retryChanged(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		if changed := (*sidecar.ChangedError)(nil); !errors.As(err, &changed) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// personal is act for a person, who has a name, and saw what they act on.
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

// named refuses an act that nobody answers for.
func named(by string) error {
	if strings.TrimSpace(by) == "" {
		return &lockkeeper.InputError{Field: "by", Value: by, Reason: "required", Next: "say who decides"}
	}
	return nil
}

// archive moves a document to where nobody reads it.
func archive(ctx context.Context, f *sidecar.Folder, doc *sidecar.Doc, bad *sidecar.MalformedError, name string) error {
	if bad != nil {
		_, err := f.SetAside(ctx, name)
		return err
	}
	if doc == nil {
		return nil
	}
	if err := keepCopy(ctx, f, doc, name); err != nil {
		return err
	}
	return f.Remove(ctx, doc, name)
}

// keepCopy keeps a copy of a document that is about to go, in earlier/<n>/ below its folder.
func keepCopy(ctx context.Context, f *sidecar.Folder, doc *sidecar.Doc, name string) error {
	for n := 1; ; n++ {
		_, err := f.Sub("earlier", strconv.Itoa(n)).Replace(ctx, nil, name, doc.Body, doc.About)
		if changed := (*sidecar.ChangedError)(nil); !errors.As(err, &changed) {
			return err
		}
	}
}

func refused(act, next, reason string, args ...any) error {
	return &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf(reason, args...), Next: next}
}

// stamp is how messages tell times.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
