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
	"lockkeeper/internal/app"
)

// State is where a patch stands.
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
	Session string             `json:"session,omitempty"` // who is to be told; empty: nobody
	At      time.Time          `json:"at"`
	Base    lockkeeper.Version `json:"base"` // what the file held when it was made
	State   State              `json:"state"`
	Why     string             `json:"why,omitempty"`     // it was rescued
	Landing uint64             `json:"landing,omitempty"` // with which it landed
	Rescue  string             `json:"rescue,omitempty"`  // where it is kept
}

// stored is a patch as it is on disk.
type stored struct {
	Patch
	Text  []byte `json:"text,omitempty"` // the unified diff; empty: the whole content is wanted
	Want  []byte `json:"want"`           // what it makes of its base
	Drops bool   `json:"drops,omitempty"`
}

// Queue is the patches of one codebase that wait.
type Queue struct {
	app *app.App
	dir string
	now func() time.Time
}

// Open opens the queue of an open codebase.
func Open(a *app.App) *Queue { return &Queue{app: a, dir: a.DeferredDir(), now: time.Now} }

// MaxSize is the largest patch, and the largest file, in bytes.
const MaxSize = 8 << 20

// Put queues a change of a file, which is spelled in any way: a unified diff, or its whole
// new content.
func (q *Queue) Put(ctx context.Context, p Patch, text []byte, whole bool) (Patch, error) {
	path, err := q.app.File(p.Path)
	if err != nil {
		return p, err
	}
	if len(text) > MaxSize {
		return p, bad("it is larger than 8 MiB")
	}
	content, base, err := q.read(path)
	if err != nil {
		return p, err
	}
	p.ID, p.Path, p.At, p.Base, p.State = newID(q.now()), path, q.now(), base, Queued
	s := stored{Patch: p, Want: text}
	if !whole {
		d, err := parseDiff(string(text))
		if err != nil {
			return p, err
		}
		want, ok := d.apply(string(content))
		if !ok || d.create == base.Exists() {
			return p, bad("it does not fit " + path + " as that is now")
		}
		s.Text, s.Want, s.Drops = text, []byte(want), d.remove
	}
	if err := os.MkdirAll(q.dir, 0o755); err != nil {
		return p, err
	}
	return p, q.save(ctx, s)
}

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

func (q *Queue) file(id string) string { return filepath.Join(q.dir, id+".json") }

func (q *Queue) save(ctx context.Context, s stored) error {
	return durable.WriteJSON(ctx, q.file(s.ID), s, 0o600)
}

// all reads what is there, oldest first.
func (q *Queue) all() (list []stored, err error) {
	entries, err := os.ReadDir(q.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		id, ours := strings.CutSuffix(e.Name(), ".json")
		if !ours {
			continue
		}
		s, reading := durable.ReadJSON[stored](q.file(id))
		switch {
		case errors.Is(reading, fs.ErrNotExist): // it was told meanwhile
		case reading != nil:
			err = errors.Join(err, reading)
		default:
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b stored) int { return cmp.Compare(a.ID, b.ID) })
	return list, err
}

// List is the patches of everybody, oldest first, also those that ended and whose owners
// were not told yet.
func (q *Queue) List() (list []Patch, err error) {
	found, err := q.all()
	for _, s := range found {
		list = append(list, s.Patch)
	}
	return list, err
}

// News lists what became of the patches of a session, each once.
func (q *Queue) News(session string) (list []Patch, err error) {
	found, err := q.all()
	for _, s := range found {
		if s.Session == session && s.State != Queued {
			list = append(list, s.Patch)
			err = errors.Join(err, os.Remove(q.file(s.ID)))
		}
	}
	return list, err
}

func newID(at time.Time) string {
	var random [3]byte
	rand.Read(random[:]) // never fails
	return at.UTC().Format("20060102T150405.000000") + "-" + hex.EncodeToString(random[:])
}
