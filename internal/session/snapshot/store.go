package snapshot

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
)

// A Store holds the snapshots of one tree.
type Store struct {
	root, dir string
}

// Open returns the store of the tree at root. The first snapshot creates dir, whose parent
// must exist.
func Open(root, dir string) *Store { return &Store{root: root, dir: dir} }

// A Snapshot lists the files that were copied before one command.
type Snapshot struct {
	ID      string              `json:"id"`
	At      time.Time           `json:"at"`
	Holder  string              `json:"holder"`            // callsign of the session
	Process *lockkeeper.Process `json:"process,omitempty"` // process of the session
	Command string              `json:"command"`
	Ended   bool                `json:"ended,omitempty"` // the command has ended; Recover moves Files to the rescue shelf
	Grown   bool                `json:"grown,omitempty"` // the snapshot added copies to the store
	Files   []File              `json:"files"`
}

type File struct {
	Path  string      `json:"path"` // path from the root, with slashes
	State State       `json:"state"`
	Mode  fs.FileMode `json:"mode"`
	Copy  string      `json:"copy"` // name of the copy
}

// shared reports whether other snapshots may use the same copy.
func (f File) shared() bool { return f.Copy == f.State.name() }

func (s *Store) at(path string) string     { return filepath.Join(s.root, filepath.FromSlash(path)) }
func (s *Store) copies() string            { return filepath.Join(s.dir, "copies") }
func (s *Store) copyAt(name string) string { return filepath.Join(s.copies(), name) }
func (s *Store) manifest(id string) string { return filepath.Join(s.dir, id+manifestEnd) }

func (s *Store) Content(f File) ([]byte, error) { return os.ReadFile(s.copyAt(f.Copy)) }

const manifestEnd = ".json"

// lock opens the lock file of the store: Take holds its shared lock, sweep the exclusive one.
func (s *Store) lock() (*os.File, error) {
	if err := os.MkdirAll(s.copies(), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
}

// save writes the manifest of a snapshot atomically.
func (s *Store) save(snap *Snapshot) error {
	text, err := json.Marshal(snap)
	if err != nil {
		return err
	}
	draft := s.manifest(snap.ID) + ".new"
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, s.manifest(snap.ID))
}

// Get reads an open snapshot, or returns nil if no open snapshot has this id.
func (s *Store) Get(id string) (*Snapshot, error) {
	text, err := os.ReadFile(s.manifest(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var snap Snapshot
	if err == nil {
		err = json.Unmarshal(text, &snap)
	}
	if err != nil {
		return nil, &lockkeeper.StoreError{Store: s.manifest(id), Reason: "cannot read this snapshot of uncommitted files", Err: err,
			Next: "copy what you need from " + s.copies() + ", then remove the file"}
	}
	return &snap, nil
}

// List reads all open snapshots, the oldest first.
func (s *Store) List() (list []*Snapshot, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if id, is := strings.CutSuffix(e.Name(), manifestEnd); is {
			snap, unread := s.Get(id)
			if err = errors.Join(err, unread); snap != nil {
				list = append(list, snap)
			}
		}
	}
	slices.SortFunc(list, func(a, b *Snapshot) int { return a.At.Compare(b.At) })
	return list, err
}

// SetAside stores the lost files of a snapshot as an ended snapshot of their own, for
// Recover.
func (s *Store) SetAside(snap *Snapshot, lost []File) error {
	aside := *snap
	aside.ID, aside.Ended, aside.Files = snap.ID+"-lost", true, lost
	return s.save(&aside)
}

// Without removes files from an open snapshot after the caller has handled them.
func (s *Store) Without(snap *Snapshot, done []File) error {
	if len(done) == 0 {
		return nil
	}
	gone := map[string]bool{}
	for _, f := range done {
		gone[f.Path] = true
	}
	snap.Files = slices.DeleteFunc(snap.Files, func(f File) bool { return gone[f.Path] })
	return s.save(snap)
}

// Close ends a snapshot. Its copies stay for the next snapshot. If this one added copies,
// Close removes the copies that no snapshot needs any more.
func (s *Store) Close(snap *Snapshot) error {
	if err := removed(s.manifest(snap.ID)); err != nil {
		return err
	}
	alone := slices.ContainsFunc(snap.Files, func(f File) bool { return !f.shared() })
	if !snap.Grown && !alone {
		return nil
	}
	return s.sweep(snap.Files)
}

// Recover calls the function do for every snapshot that has ended or whose command no longer runs.
// If another process is recovering already, Recover does nothing.
func (s *Store) Recover(runs func(*Snapshot) bool, do func(*Snapshot) error) (err error) {
	list, err := s.List()
	list = slices.DeleteFunc(list, func(snap *Snapshot) bool { return !snap.Ended && runs(snap) })
	if len(list) == 0 {
		return err
	}
	lock, opening := os.OpenFile(filepath.Join(s.dir, "recover.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if opening != nil {
		return errors.Join(err, opening)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if alone, locking := filelock.Try(lock); locking != nil || !alone {
		return errors.Join(err, locking)
	}
	for _, snap := range list {
		snap, reading := s.Get(snap.ID) // another process may have recovered the snapshot by now
		if err = errors.Join(err, reading); snap != nil {
			err = errors.Join(err, do(snap))
		}
	}
	return err
}

// sweep removes the copies that no open snapshot needs. It keeps the latest ones, because
// the next snapshot is likely to need them. If a snapshot is being taken, sweep does
// nothing, and the next snapshot that adds copies sweeps again.
func (s *Store) sweep(latest []File) (err error) {
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if alone, err := filelock.Try(lock); err != nil || !alone {
		return err
	}
	needed := map[string]bool{}
	for _, f := range latest {
		needed[f.Copy] = f.shared()
	}
	open, err := s.List()
	if err != nil {
		return err // a snapshot that cannot be read may need any of the copies
	}
	for _, snap := range open {
		for _, f := range snap.Files {
			needed[f.Copy] = true
		}
	}
	all, err := os.ReadDir(s.copies())
	for _, e := range all {
		if !needed[e.Name()] {
			err = errors.Join(err, removed(s.copyAt(e.Name())))
		}
	}
	return err
}

// Prune removes the copies that no open snapshot needs, unless a copy was added or removed
// after the given time.
func (s *Store) Prune(before time.Time) error {
	info, err := os.Stat(s.copies())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.ModTime().Before(before):
		return nil
	}
	return s.sweep(nil)
}
