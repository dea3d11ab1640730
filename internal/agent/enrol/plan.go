package enrol

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper"
	"lockkeeper/internal/encoding/jsonplace"
	"lockkeeper/internal/project/protect"
)

// A Site is a codebase in which hosts are enrolled.
type Site struct {
	Root    string                      // root of the codebase
	Records string                      // directory for the previous content of files
	Env     func(string) (string, bool) // looks up a variable, as os.LookupEnv does

	machine string // replaces / for files of the machine, in tests; empty: / itself
}

func At(root string, env func(string) (string, bool)) Site {
	return Site{Root: root, Records: filepath.Join(root, protect.OwnDir, "enrol"), Env: env}
}

// An Edit is the change of one file.
type Edit struct {
	Path   string // path for people, from the root, or from the user's home (~/)
	What   string // what is inserted
	File   string // the file itself, with links resolved
	Exists bool
	Goes   bool // the file is removed
	Before []byte
	After  []byte
	Note   string // a message for the person
}

// InHome reports whether the file is in the user's home and not in the codebase.
func (e Edit) InHome() bool { return isHome(e.Path) }

// An Enrolment holds the planned edits for one host, which add or remove its hooks.
type Enrolment struct {
	Host  Host
	Edits []Edit

	site  Site
	order order
	undo  bool
	kept  *record // record of an earlier enrolment; nil: none
}

// Plan returns the edits that enrol a host with a program.
func (s Site) Plan(h Host, program Program) (*Enrolment, error) {
	p, err := s.planOf(h, program)
	if err != nil {
		return nil, err
	}
	for _, f := range h.files {
		if s.place(f.path) == "" {
			continue // the user has no home directory
		}
		e, err := s.read(f.path)
		if err != nil {
			return nil, err
		}
		e.What = f.what
		if e.After, err = e.amended(f, p.order, part.into); err != nil {
			return nil, err
		}
		if !bytes.Equal(e.Before, e.After) {
			p.Edits = append(p.Edits, e)
		}
	}
	return p, p.check()
}

// In returns the plan for another site of the same codebase, which has a directory for records.
func (p Enrolment) In(s Site) *Enrolment {
	p.site = s
	return &p
}

func (s Site) planOf(h Host, program Program) (*Enrolment, error) {
	kept, err := s.recordOf(h)
	return &Enrolment{Host: h, site: s, order: order{host: h, program: program}, kept: kept}, err
}

// amended returns the content of a file with each of its parts added or removed.
func (e Edit) amended(f file, o order, one func(part, string, order) (string, error)) ([]byte, error) {
	text := string(e.Before)
	for _, p := range f.parts {
		var err error
		if text, err = one(p, text, o); err != nil {
			return nil, refused(e, err)
		}
	}
	return []byte(text), nil
}

// Undo returns the edits that remove a host. The hooks in the user's home serve every codebase, so
// they stay unless home is set.
func (s Site) Undo(h Host, home bool) (*Enrolment, error) {
	p, err := s.planOf(h, Program{})
	if err != nil {
		return nil, err
	}
	p.undo = true
	for _, f := range h.files {
		if isHome(f.path) && (!home || s.place(f.path) == "") {
			continue
		}
		e, err := s.read(f.path)
		if err != nil {
			return nil, err
		}
		if !e.Exists {
			continue
		}
		e.What = f.what
		was := p.kept.file(f.path)
		if was != nil && sumOf(e.Before) == was.After {
			e.After, e.Goes = was.Before, !was.Existed
		} else if err := p.takeOut(&e, f, was); err != nil {
			return nil, err
		}
		if e.Goes || !bytes.Equal(e.Before, e.After) {
			p.Edits = append(p.Edits, e)
		}
	}
	return p, p.check()
}

// takeOut removes our text from a file that a person has edited since.
func (p *Enrolment) takeOut(e *Edit, f file, was *keptFile) (err error) {
	if e.After, err = e.amended(f, p.order, part.outOf); err != nil {
		return err
	}
	e.Note = "edited since: only the entries of Lockkeeper are removed"
	switch {
	case e.InHome():
		e.Note = "only the entries of Lockkeeper are removed; sessions in every codebase lose these hooks"
	case was == nil:
		e.Note = "its original content is unknown: only the entries of Lockkeeper are removed"
	}
	if f.isScript() {
		e.Note = "it is removed as a whole, with what was edited since"
	}
	if bare := strings.TrimSpace(string(e.After)); bare == "" && f.isScript() || was != nil && !was.Existed && (bare == "" || bare == "{}") {
		e.Goes = true
	}
	return nil
}

// read reads a file of the codebase and resolves links.
func (s Site) read(path string) (Edit, error) {
	e := Edit{Path: path, File: s.place(path)}
	real, err := filepath.EvalSymlinks(e.File)
	if errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Lstat(e.File); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return e, &lockkeeper.RefusedError{Act: "init", Reason: path + " is a link to a missing file", Next: "create that file, or remove the link"}
		}
		return e, nil
	}
	if err != nil {
		return e, err
	}
	e.File, e.Exists = real, true
	info, err := os.Stat(real)
	if err != nil {
		return e, err
	}
	if !info.Mode().IsRegular() {
		return e, &lockkeeper.RefusedError{Act: "init", Reason: path + " is not a regular file", Next: "move it away"}
	}
	e.Before, err = os.ReadFile(real)
	return e, err
}

// check refuses a plan that cannot be carried out.
func (p *Enrolment) check() error {
	for _, e := range p.Edits {
		if !e.Exists {
			continue
		}
		info, err := os.Stat(e.File)
		if err != nil {
			return err
		}
		if info.Mode()&0o200 == 0 {
			return &lockkeeper.RefusedError{Act: "init", Reason: e.Path + " is read-only; nothing was changed", Next: "chmod u+w " + e.File + ", then repeat the command"}
		}
	}
	return nil
}

// refused returns the error for a file that cannot be parsed, with its position.
func refused(e Edit, err error) error {
	var wrong *syntaxError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	line, column := jsonplace.Position(e.Before, int64(wrong.at))
	return &lockkeeper.InputError{Field: "settings", Value: fmt.Sprintf("%s:%d:%d", e.Path, line, column), Reason: wrong.reason,
		Next: "fix that file, then repeat the command; nothing was changed"}
}

func (e Edit) Diff() string {
	from, to := "a/"+e.Path, "b/"+e.Path
	after := e.After
	if !e.Exists {
		from = os.DevNull
	}
	if e.Goes {
		to, after = os.DevNull, nil
	}
	return string(diff.Diff(from, e.Before, to, after))
}
