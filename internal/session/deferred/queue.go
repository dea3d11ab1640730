package deferred

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/refusal"
)

// State is the state of a deferred patch.
type State string

// The states.
const (
	Queued  State = "queued"
	Landed  State = "landed"
	Rescued State = "rescued"
)

// Patch is a change that waits for its file to be free.
type Patch struct {
	ID      string             `json:"id"` // sorts by time
	Path    string             `json:"path"`
	By      string             `json:"by"`                // whose it is: a callsign
	Session string             `json:"session,omitempty"` // who is told how it ended; empty: no one
	At      time.Time          `json:"at"`
	Base    lockkeeper.Version `json:"base"` // what it was made from
	State   State              `json:"state"`
	Why     string             `json:"why,omitempty"`     // it was rescued
	Landing uint64             `json:"landing,omitempty"` // with which it landed
	Rescue  string             `json:"rescue,omitempty"`  // where it is kept
}

// stored is a patch as it is on disk.
type stored struct {
	Patch
	Text  []byte `json:"text,omitempty"`  // the unified diff; empty: the whole content is wanted
	Want  []byte `json:"want"`            // what it makes of its base
	Exact bool   `json:"exact,omitempty"` // its author knew the base, and so its line numbers are right there
	Bound bool   `json:"bound,omitempty"` // to that base: only its line numbers say which place is meant
	Drops bool   `json:"drops,omitempty"`
}

// Queue is the patches of one codebase that wait.
type Queue struct {
	app *project.Project
	dir string
	now func() time.Time
}

// Open opens the queue of an open codebase.
func Open(a *project.Project) *Queue {
	return &Queue{app: a, dir: a.Below(project.DirName + "/deferred"), now: time.Now}
}

// MaxSize is the largest patch, and the largest file, in bytes.
const MaxSize = 8 << 20

// Put queues a change of a file, which is spelled in any way: a unified diff, or its whole
// new content. The patch's base is what its author knows the file to hold; zero: nothing.
// A whole content that replaces a file requires it, because the author must have seen what
// it replaces. A path that the gate always refuses is refused at once.
func (q *Queue) Put(ctx context.Context, p Patch, text []byte, whole bool) (Patch, error) {
	path, err := q.app.File(p.Path)
	if err != nil {
		return p, err
	}
	if err := q.app.Permits(path); err != nil {
		return p, err
	}
	if len(text) > MaxSize {
		return p, bad("it is larger than 8 MiB")
	}
	content, base, err := q.read(path)
	if err != nil {
		return p, err
	}
	known := p.Base
	p.ID, p.Path, p.At, p.State = newID(q.now()), path, q.now(), Queued
	s := stored{Patch: p, Want: text}
	switch {
	case !whole:
		d, err := parseDiff(string(text))
		if err != nil {
			return p, err
		}
		if !d.isOf(path) { // its lines may fit here as well
			return p, bad("it is of " + cmp.Or(d.is, d.was) + ", and not of " + path)
		}
		s.Base, s.Exact = base, known.Exists() && sameContent(known, base)
		want, ok := d.apply(string(content), s.Exact)
		if !ok || d.create == base.Exists() {
			return p, bad("it does not fit " + path + " as that is now, in one place and no other: read the file again, and give the hunk more lines around")
		}
		_, anywhere := d.apply(string(content), false)
		s.Text, s.Want, s.Drops, s.Bound = text, []byte(want), d.remove, !anywhere
	case base.Exists() && !known.Exists():
		return p, &lockkeeper.InputError{Field: "base", Reason: "this session does not know the present content of " + path + ": it has not read it, or another program changed it since",
			Next: "read the file and retry, give its SHA-256 as base, or send a unified diff"}
	}
	if err := os.MkdirAll(q.dir, 0o755); err != nil {
		return p, err
	}
	return s.Patch, q.save(ctx, s)
}

// sameContent reports whether two versions hold the same; permissions may differ.
func sameContent(v, w lockkeeper.Version) bool { return v.Kind == w.Kind && v.Sum == w.Sum }

// read is what is at a path now; nothing is not an error.
func (q *Queue) read(path string) (content []byte, v lockkeeper.Version, err error) {
	name := filepath.Join(q.app.Root.Dir(), filepath.FromSlash(path))
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, v, nil
	case err != nil:
		return nil, v, err
	case !info.Mode().IsRegular() || info.Size() > MaxSize:
		return nil, v, &lockkeeper.InputError{Field: "path", Value: path, Reason: "not a file of up to 8 MiB", Next: "wait for it, and change it yourself"}
	}
	if content, err = os.ReadFile(name); err != nil {
		return nil, v, err
	}
	return content, lockkeeper.Version{Kind: lockkeeper.File, Mode: info.Mode().Perm(), Sum: sha256.Sum256(content)}, nil
}

// How the names of patches end, and of those that could not be read.
const (
	patchEnd   = ".json"
	damagedEnd = ".unreadable"
)

func (q *Queue) file(id string) string { return filepath.Join(q.dir, id+patchEnd) }

func (q *Queue) save(ctx context.Context, s stored) error {
	return durable.WriteJSON(ctx, q.file(s.ID), s, 0o600)
}

// all reads what is there, oldest first. What cannot be read is passed over: it does not
// stop the others. A patch that another user keeps for themselves lands when they call; anything else
// is damaged.
func (q *Queue) all() (list []stored, damaged []string, err error) {
	entries, err := os.ReadDir(q.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		id, ours := strings.CutSuffix(e.Name(), patchEnd)
		if !ours {
			continue
		}
		if !e.Type().IsRegular() {
			damaged = append(damaged, id)
			continue
		}
		s, reading := durable.ReadJSON[stored](q.file(id))
		switch {
		case errors.Is(reading, fs.ErrNotExist): // it was told meanwhile
		case errors.Is(reading, fs.ErrPermission):
		case reading != nil || s.ID != id || s.Path == "":
			damaged = append(damaged, id)
		default:
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b stored) int { return cmp.Compare(a.ID, b.ID) })
	return list, damaged, err
}

// List is the patches of everybody, oldest first, also those that ended and whose owners
// were not told yet.
func (q *Queue) List() (list []Patch, err error) {
	found, _, err := q.all()
	for _, s := range found {
		list = append(list, s.Patch)
	}
	return list, err
}

// News says what became of the patches of a session, each once, and of those that cannot be
// read, whose owner is unknown.
func (q *Queue) News(session string) (list []string, err error) {
	found, _, err := q.all()
	for _, s := range found {
		if s.Session != session || s.State == Queued {
			continue
		}
		text := refusal.Landed(s.Path)
		if s.State == Rescued {
			text = refusal.NotLanded(s.Path, s.Why, s.Rescue)
		}
		list = append(list, text)
		err = errors.Join(err, os.Remove(q.file(s.ID)))
	}
	aside, setting := q.SetAside()
	return append(list, aside...), errors.Join(err, setting)
}

// SetAside moves away what cannot be read, and reports each once, to the first caller.
func (q *Queue) SetAside() (list []string, err error) {
	_, damaged, err := q.all()
	for _, id := range damaged {
		aside := filepath.Join(q.dir, id+damagedEnd)
		switch moving := os.Rename(q.file(id), aside); {
		case errors.Is(moving, fs.ErrNotExist): // another process reported it
		case moving != nil:
			err = errors.Join(err, moving)
		default:
			list = append(list, refusal.Unreadable(aside))
		}
	}
	return list, err
}

func newID(at time.Time) string {
	var random [3]byte
	rand.Read(random[:]) // never fails
	return at.UTC().Format("20060102T150405.000000") + "-" + hex.EncodeToString(random[:])
}
