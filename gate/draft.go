package gate

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"lockkeeper"
)

// draft is a directory that is prepared in the tree, beside the one that it is to
// replace, instead of in a stage.
type draft struct {
	in   *os.File
	name string
}

// What a stage holds besides numbered entries: the note that says where its draft is,
// and new directories on their way into the tree.
const (
	draftNote = "at"
	dirPrefix = "d"
)

// noteDraft opens the place of a draft and notes it in the stage.
func (s *stage) noteDraft(path string) error {
	disk := s.g.disk
	f, err := disk.Create(s.dir, s.entry(draftNote))
	if err != nil {
		return err
	}
	if err := errors.Join(disk.Write(f, []byte(path)), disk.Sync(f), disk.Close(f)); err != nil {
		return err
	}
	if err := s.settle(); err != nil {
		return err
	}
	parent, name := split(path)
	above, last := split(parent)
	at, err := disk.OpenDir(s.g.root, above)
	if errors.Is(err, fs.ErrNotExist) {
		return &lockkeeper.InputError{Field: "target", Value: above, Reason: "there is no such directory", Next: "make it first"}
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

// collectDraft moves what is in the place of a draft into the stage, as entry 0.
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
	if err := disk.Move(in, name, s.dir, s.entry("0")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.Remove(s.dir, s.entry(draftNote)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// draftOf reads where the draft of a stage is; empty when it has none.
func (s *stage) draftOf() (string, error) {
	f, err := s.g.disk.OpenFile(s.dir, s.entry(draftNote))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	path, err := io.ReadAll(io.LimitReader(f, lockkeeper.MaxPathSize))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	// Whoever wrote the note may not have been a gate: only what a gate prepares is
	// ever taken out of the tree.
	parent, name := split(string(path))
	if name != s.commit || len(name) != len(newID()) || !strings.HasSuffix(parent, "/"+draftDir) || s.g.allowed(s.g.opt.Protected.Look(), string(path)) != nil {
		return "", nil
	}
	return string(path), nil
}

// reclaimDraft collects the draft at a path of the tree, and reports whether there
// was one.
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
