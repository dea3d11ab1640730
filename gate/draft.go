package gate

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"lockkeeper"
)

// A draft is a directory that is prepared in the tree instead of in a stage. It is in
// the same directory as the one that it replaces.
type draft struct {
	in   *os.File
	name string
}

// Other entries of a stage: the note with the path of its draft, and new directories that
// are not yet in the tree.
const (
	draftNote = "at"
	dirPrefix = "d"
)

// noteDraft notes the path of a draft in the stage and opens its parent.
func (s *stage) noteDraft(path string) error {
	disk := s.g.disk
	f, err := disk.Create(s.dir, s.entry(draftNote))
	if err != nil {
		return err
	}
	if err := errors.Join(disk.Write(f, []byte(path)), disk.Sync(f), disk.Close(f)); err != nil {
		return err
	}
	if err := s.syncNames(); err != nil {
		return err
	}
	parent, name := split(path)
	above, last := split(parent)
	at, err := disk.OpenDir(s.g.root, above)
	if errors.Is(err, fs.ErrNotExist) {
		return &lockkeeper.InputError{Field: "target", Value: above, Reason: "no such directory", Next: "mkdir -p " + above}
	}
	if err != nil {
		return err
	}
	in, err := s.g.subdir(at, last)
	if err != nil {
		return errors.Join(err, at.Close())
	}
	s.draft = &draft{in: in, name: name}
	return at.Close()
}

// collectDraft moves the draft into the stage, as entry 0.
func (s *stage) collectDraft() error {
	if s.draft == nil {
		return nil
	}
	d := s.draft
	s.draft = nil
	return errors.Join(s.takeDraft(d.in, d.name), d.in.Close())
}

func (s *stage) takeDraft(in *os.File, name string) error {
	disk := s.g.disk
	if err := unlessMissing(disk.Move(in, name, s.dir, s.entry("0"))); err != nil {
		return err
	}
	return unlessMissing(disk.Remove(s.dir, s.entry(draftNote)))
}

// draftOf returns the path of the draft of a stage; empty if it has none.
func (s *stage) draftOf() (string, error) {
	f, err := s.g.disk.OpenFile(s.dir, s.entry(draftNote))
	if err != nil {
		return "", unlessMissing(err)
	}
	path, err := io.ReadAll(io.LimitReader(f, lockkeeper.MaxPathSize))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	// Another program may have written the note. Only a path that a gate would use may be
	// moved out of the tree.
	parent, name := split(string(path))
	if name != s.commit || len(name) != len(newID()) || !strings.HasSuffix(parent, "/"+draftDir) || s.g.allowed(s.g.opt.Protected.Checker(), string(path)) != nil {
		return "", nil
	}
	return string(path), nil
}

// reclaimDraft moves the draft at a path of the tree into the stage, and reports whether
// there was one.
func (s *stage) reclaimDraft(path string) (there bool, err error) {
	in, name, err := s.g.openParent(path)
	if errors.Is(err, fs.ErrNotExist) || isElsewhere(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := s.g.disk.Lstat(in, name); err == nil {
		there = true
	}
	return there, errors.Join(s.takeDraft(in, name), in.Close())
}
