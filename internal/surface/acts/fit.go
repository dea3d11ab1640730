package acts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/merge"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// The states of a Fit.
const (
	FitLanded    = "landed"    // the file has the content already
	FitUnchanged = "unchanged" // the file is as the change found it
	FitClean     = "clean"     // the file moved on, and the change still applies
	FitConflict  = "conflict"  // the file moved on, and the change does not apply
	FitUnknown   = "unknown"   // it is not known what the change was based on
)

// A Fit says what a kept change does to the content it was based on, and whether it applies to the
// file as it is now.
type Fit struct {
	State     string             `json:"state"` // empty: the change is not one of a single file
	Change    merge.Counts       `json:"change"`
	Moved     *merge.Counts      `json:"moved,omitempty"` // what changed in the file since; nil: nothing, or unknown
	Since     []Later            `json:"since,omitempty"` // who landed that
	Conflicts []merge.Conflict   `json:"conflicts,omitempty"`
	Note      string             `json:"note,omitempty"` // why there is no diff, no merge, or how to read the diff
	Now       lockkeeper.Version `json:"now"`            // the version of the file that the change was compared with

	Text    string `json:"-"` // diff from the base to the kept content
	Merged  string `json:"-"` // the file after the change; has markers around conflicts
	deletes bool
	merges  bool // Merged is what lands
}

// Later is a landing that changed a file after a kept change was made.
type Later struct {
	Landing uint64 `json:"landing"` // 0: the file was changed outside of the gate
	Holder  string `json:"holder,omitempty"`
}

func (l Later) String() string {
	if l.Landing == 0 {
		return "a writer outside the gate"
	}
	return fmt.Sprintf("landing %d of %s", l.Landing, l.Holder)
}

// Applies reports whether landing the change keeps all later work.
func (f Fit) Applies() bool { return f.State == FitUnchanged || f.State == FitClean }

// String describes a fit in one sentence; "" if there is nothing to compare.
func (f Fit) String() string {
	what := f.Change.String()
	if f.deletes {
		what = "deletes the file"
	}
	since := "the file moved on since"
	if f.Moved != nil {
		since += " (" + f.Moved.String() + f.by() + ")"
	}
	switch f.State {
	case FitLanded:
		return "the file has this content already"
	case FitUnchanged:
		return what + "; the file is as it was: applies cleanly"
	case FitClean:
		return what + "; " + since + ": applies cleanly"
	case FitConflict:
		if n := len(f.Conflicts); n > 1 {
			return fmt.Sprintf("%s; %s: conflicts in %d places", what, since, n)
		}
		return what + "; " + since + ": conflicts"
	case FitUnknown:
		return "its base is unknown, so it cannot be merged"
	}
	return ""
}

// by names the writers of later changes.
func (f Fit) by() string {
	var names []string
	for i, l := range f.Since {
		if i == 3 {
			names = append(names, fmt.Sprintf("and %d more", len(f.Since)-i))
			break
		}
		names = append(names, l.String())
	}
	if names == nil {
		return ""
	}
	return ", by " + strings.Join(names, ", ")
}

// A present is a file as it is now.
type present struct {
	version lockkeeper.Version // zero: missing
	content []byte
	large   bool // content has only the beginning
}

// readPresent reads the file at a path from the root.
func readPresent(a *project.Project, path string) (p present, err error) {
	root, err := os.Open(a.Root.Dir())
	if err != nil {
		return p, err
	}
	f, err := durable.OSDisk{}.OpenFile(root, path) // follows no link, and stays in the root
	err = errors.Join(err, root.Close())
	if f == nil && errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if f == nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return p, err
	}
	if !info.Mode().IsRegular() {
		return p, errors.New("not a regular file")
	}
	sum := sha256.New()
	if p.content, err = io.ReadAll(io.TeeReader(io.LimitReader(f, diffLimit+1), sum)); err != nil {
		return p, err
	}
	if p.large = len(p.content) > diffLimit; p.large {
		if _, err := io.Copy(sum, f); err != nil {
			return p, err
		}
	}
	p.version = lockkeeper.Version{Kind: lockkeeper.File, Mode: info.Mode().Perm(), Sum: [32]byte(sum.Sum(nil))}
	return p, nil
}

// FitOf compares a kept change with its base and with the file as it is now.
func FitOf(ctx context.Context, a *project.Project, e rescue.Entry) (f Fit, err error) {
	shelf := a.Shelf()
	switch e.Kind {
	case rescue.Archive:
		return Fit{Note: "an archive of many files; to list them: " + ListArchive(a, e)}, nil
	case rescue.Whole, rescue.Noted:
		where, err := readSome(shelf.Content(e.ID))
		return Fit{Note: strings.TrimSpace(string(where))}, err
	case rescue.Damaged:
		return Fit{Note: "the remaining content is in " + shelf.ContentPath(e.ID)}, nil
	}
	now, err := readPresent(a, e.Path)
	if err != nil {
		return Fit{Note: "the current content of " + e.Path + " cannot be read: " + err.Error()}, nil
	}
	f.Now, f.deletes = now.version, e.Delete
	if e.Sum == "" && !e.Delete {
		f.Note = fmt.Sprintf("no content is kept; the change only sets the permissions %04o", e.Mode.Perm())
		f.State = opaque(e, now)
		return f, nil
	}
	var kept []byte
	if !e.Delete {
		if kept, err = readSome(shelf.Content(e.ID)); err != nil {
			return f, err
		}
	}
	switch {
	case len(kept) > diffLimit || now.large:
		f.Note = "too large to be shown as a diff; the content is in " + shelf.ContentPath(e.ID)
		f.State = opaque(e, now)
		return f, nil
	case isBinary(kept) || isBinary(now.content):
		f.Note = "binary content, SHA-256 " + e.Sum + "; it is in " + shelf.ContentPath(e.ID)
		f.State = opaque(e, now)
		return f, nil
	}
	base, known, err := baseOf(ctx, a, e, now)
	if err != nil {
		return f, err
	}
	f.compare(e, string(base), known && !isBinary(base), string(kept), now)
	if f.Moved != nil {
		f.Since, err = landedSince(ctx, a, e, now.version)
	}
	return f, err
}

// opaque returns the state of a change whose content cannot be merged.
func opaque(e rescue.Entry, now present) string {
	same := now.version.Exists() == e.Base.Exists() && now.version.Sum == e.Base.Sum
	switch {
	case e.Sum != "" && e.Sum == fmt.Sprintf("%x", now.version.Sum), e.Delete && !now.version.Exists():
		return FitLanded
	case !e.HasBase():
		return FitUnknown
	case same:
		return FitUnchanged
	}
	return FitConflict
}

// compare sets the state of a change of text, its diff and the merged content.
func (f *Fit) compare(e rescue.Entry, base string, known bool, kept string, present present) {
	now, there := string(present.content), present.version.Exists()
	mode := present.version.Mode
	sets := !e.Delete && e.Mode != 0 && e.HasBase() && e.Base.Exists() && e.Mode != e.Base.Mode // the change sets the permissions
	if there == !e.Delete && now == kept && (!sets || mode == e.Mode) {
		f.State, f.Note = FitLanded, "the file has this content already"
		if known && base != kept {
			f.Note += "; the diff shows what it changed"
			f.show(e, base, e.Base.Exists(), kept)
		}
		return
	}
	if !known {
		f.show(e, now, there, kept)
		switch {
		case !there && e.HasBase():
			f.State, f.Note = FitConflict, "the file was deleted since"
			return
		case !there:
			f.State = FitClean // nothing is replaced
			return
		}
		r := merge.TwoWay(kept, now)
		f.State, f.Conflicts, f.Merged = FitUnknown, r.Conflicts, r.Text
		f.Note = "the content it was based on is not known, so this compares it with the file as it is now: lines shown as removed may be later work"
		return
	}
	f.show(e, base, e.Base.Exists(), kept)
	if sets && there && mode != e.Mode && mode != e.Base.Mode {
		r := merge.ThreeWay(base, kept, now)
		f.State, f.Conflicts, f.Merged = FitConflict, r.Conflicts, r.Text
		f.Note = fmt.Sprintf("the change sets the permissions %04o, and since then they became %04o", e.Mode.Perm(), mode.Perm())
		return
	}
	if there == e.Base.Exists() && base == now {
		f.State, f.merges, f.Merged = FitUnchanged, !e.Delete, kept
		return
	}
	f.Moved = new(merge.Count(base, now))
	switch {
	case e.Delete:
		f.State, f.Note = FitConflict, "the change deletes the file, which changed since"
	case !there:
		f.State, f.Note = FitConflict, "the file was deleted since"
	default:
		r := merge.ThreeWay(base, kept, now)
		f.State, f.Conflicts, f.Merged = FitClean, r.Conflicts, r.Text
		if f.merges = r.Conflicts == nil; !f.merges {
			f.State = FitConflict
		}
	}
}

// show sets the diff of a change and the number of its lines.
func (f *Fit) show(e rescue.Entry, from string, existed bool, kept string) {
	was, is := e.Path, e.Path
	if !existed {
		was = nothing
	}
	if e.Delete {
		is = nothing
	}
	f.Change, f.Text = merge.Count(from, kept), string(diff.Diff(was, []byte(from), is, []byte(kept)))
}

// baseOf returns the content that a kept change was based on. Entries of earlier versions do not
// have it, and then it may still be known from the file, a landing or a session.
func baseOf(ctx context.Context, a *project.Project, e rescue.Entry, now present) (content []byte, known bool, err error) {
	switch {
	case !e.HasBase():
		return nil, false, nil
	case !e.Base.Exists():
		return nil, true, nil
	case e.Base.Sum == now.version.Sum:
		return now.content, true, nil
	}
	if content, known, err = a.Shelf().Base(e.ID); known || err != nil {
		return content, known, err
	}
	if content = session.Copy(a, fmt.Sprintf("%x", e.Base.Sum)); content != nil {
		return content, true, nil
	}
	g, err := a.Gate()
	if err != nil {
		return nil, false, err
	}
	f, err := g.Original(ctx, e.Path, e.Base)
	if err != nil || f == nil {
		return nil, false, err
	}
	content, err = io.ReadAll(io.LimitReader(f, diffLimit+1))
	return content, sha256.Sum256(content) == e.Base.Sum, errors.Join(err, f.Close())
}

// landedSince lists who changed a file after the version that a kept change is based on, the last
// one first.
func landedSince(ctx context.Context, a *project.Project, e rescue.Entry, now lockkeeper.Version) (list []Later, err error) {
	const recent = 50 // landings that are looked at
	landings, err := store.Read(ctx, a.Store, func(r store.Reader) ([]*lockkeeper.Landing, error) {
		return r.Landings(store.LandingQuery{Path: e.Path, Latest: true, Limit: recent})
	})
	if err != nil {
		return nil, err
	}
	expected, base := now.Sum, e.Base.Sum
	outside := func() {
		if n := len(list); n == 0 || list[n-1].Landing != 0 {
			list = append(list, Later{})
		}
	}
	for _, l := range landings {
		i := slices.IndexFunc(l.Changes, func(c lockkeeper.PathChange) bool { return c.Path == e.Path })
		if i < 0 || l.State == lockkeeper.Undone || l.Changes[i].Old.Sum == l.Changes[i].New.Sum {
			continue
		}
		c := l.Changes[i]
		if expected == base || c.New.Sum == base || c.Old.Sum != base && l.At.Before(e.At) {
			break
		}
		if c.New.Sum != expected {
			outside()
		}
		list, expected = append(list, Later{Landing: l.Seq, Holder: l.Holder}), c.Old.Sum
	}
	if expected != base {
		outside()
	}
	return list, nil
}
