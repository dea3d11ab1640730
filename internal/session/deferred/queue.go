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

// A State is the state of a deferred patch.
type State string

const (
	Queued  State = "queued"
	Landed  State = "landed"
	Rescued State = "rescued"
)

// A Patch is a change that waits until its file is free.
type Patch struct {
	ID      string             `json:"id"` // ids sort in the order in which the patches were queued
	Path    string             `json:"path"`
	By      string             `json:"by"`                // callsign of the patch's author
	Session string             `json:"session,omitempty"` // session that is told the result; empty: none
	At      time.Time          `json:"at"`
	Base    lockkeeper.Version `json:"base"` // the version from which it was made
	State   State              `json:"state"`
	Why     string             `json:"why,omitempty"`     // why the patch was rescued
	Landing uint64             `json:"landing,omitempty"` // number of the patch's landing
	Rescue  string             `json:"rescue,omitempty"`  // id on the rescue shelf
}

// stored is a patch in its form on disk.
type stored struct {
	Patch
	Text  []byte `json:"text,omitempty"`  // the unified diff; empty: Want is the whole content
	Want  []byte `json:"want"`            // the result of applying the patch to its base
	Exact bool   `json:"exact,omitempty"` // the author knew the base, so the line numbers are valid there
	Bound bool   `json:"bound,omitempty"` // the patch fits only its base, because only line numbers identify the place
	Drops bool   `json:"drops,omitempty"`
}

// A Queue holds the deferred patches of one codebase.
type Queue struct {
	app *project.Project
	dir string
	now func() time.Time
}

func Open(a *project.Project) *Queue {
	return &Queue{app: a, dir: a.Below(project.DirName + "/deferred"), now: time.Now}
}

// MaxSize is the largest patch, and the largest file, in bytes.
const MaxSize = 8 << 20

// Put queues a change of a file: a unified diff, or the whole new content. p.Base is the version
// that the author has seen, or zero. Whole content that replaces a file requires it, because the
// author must have seen the replaced content. Put refuses a path that the gate never writes.
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
		if !d.isOf(path) { // the lines of the patch may fit this file as well
			return p, bad("it names " + d.names() + ", not only " + path)
		}
		s.Base, s.Exact = base, known.Exists() && sameContent(known, base)
		want, ok := d.apply(string(content), s.Exact)
		if !ok || d.create == base.Exists() {
			return p, bad("it does not match exactly one place in the current " + path + ": read the file again, and give the hunk more lines of context")
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

// sameContent reports whether two versions have the same content. Permissions may differ.
func sameContent(v, w lockkeeper.Version) bool { return v.Kind == w.Kind && v.Sum == w.Sum }

// read returns the current content and version of a path. A missing file is not an error.
func (q *Queue) read(path string) (content []byte, v lockkeeper.Version, err error) {
	name := filepath.Join(q.app.Root.Dir(), filepath.FromSlash(path))
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, v, nil
	case err != nil:
		return nil, v, err
	case !info.Mode().IsRegular() || info.Size() > MaxSize:
		return nil, v, &lockkeeper.InputError{Field: "path", Value: path, Reason: "not a file of up to 8 MiB", Next: "wait until the file is free, and change it yourself"}
	}
	if content, err = os.ReadFile(name); err != nil {
		return nil, v, err
	}
	return content, lockkeeper.Version{Kind: lockkeeper.File, Mode: info.Mode().Perm(), Sum: sha256.Sum256(content)}, nil
}

// Extensions of patch files, and of those that could not be read.
const (
	patchEnd   = ".json"
	damagedEnd = ".unreadable"
)

func (q *Queue) file(id string) string { return filepath.Join(q.dir, id+patchEnd) }

func (q *Queue) save(ctx context.Context, s stored) error {
	return durable.WriteJSON(ctx, q.file(s.ID), s, 0o600)
}

// all reads the stored patches, oldest first, and lists the damaged ones. It skips patches that
// only another user can read; they land when that user runs a command.
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
		case errors.Is(reading, fs.ErrNotExist): // another process removed the patch meanwhile
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

// List returns the patches of all users, oldest first. It includes finished patches whose result
// was not reported yet.
func (q *Queue) List() (list []Patch, err error) {
	found, _, err := q.all()
	for _, s := range found {
		list = append(list, s.Patch)
	}
	return list, err
}

// News reports the results of a session's patches, each once. It also reports damaged patches,
// whose owner is unknown.
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

// SetAside renames damaged patches and reports each once, to the first caller.
func (q *Queue) SetAside() (list []string, err error) {
	_, damaged, err := q.all()
	for _, id := range damaged {
		aside := filepath.Join(q.dir, id+damagedEnd)
		switch moving := os.Rename(q.file(id), aside); {
		case errors.Is(moving, fs.ErrNotExist): // another process reported the patch
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
