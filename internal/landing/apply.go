package landing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/project"
)

// An Outcome is the result of one requested change.
type Outcome struct {
	Path     string
	Landed   bool               // false without a refusal if the tree already had the change
	Version  lockkeeper.Version // the landed version
	Refusal  error
	HeldBack bool // another change of the same unit was refused
}

// An Applied is the result of changes that land together.
type Applied struct {
	Landing *lockkeeper.Landing // nil if nothing landed
	Files   []Outcome           // sorted by path
}

// Apply lands changes as one unit, under a grant of this user if grantID is set. It omits changes
// that the gate refuses; the gate keeps them. If whole is set, one refusal refuses them all. The
// paths of changes are relative to the root.
func Apply(ctx context.Context, a *project.Project, grantID string, changes []gate.Change, whole bool) (*Applied, error) {
	grant, err := a.GrantOf(ctx, grantID)
	if err != nil {
		return nil, err
	}
	return ApplyUnder(ctx, a, grant, changes, whole)
}

// ApplyUnder does the same as Apply under a grant whose token the caller has. A nil grant means
// no grant.
func ApplyUnder(ctx context.Context, a *project.Project, grant *lockkeeper.Grant, changes []gate.Change, whole bool) (*Applied, error) {
	g, err := a.Gate()
	if err != nil {
		return nil, notKept(changes, err)
	}
	done := &Applied{}
	var refused []error
	switch {
	case len(changes) == 0:
	case whole:
		done.Landing, err = g.Commit(ctx, grant, changes)
	default:
		done.Landing, refused, err = g.Apply(ctx, grant, changes)
	}
	if err != nil {
		return nil, errors.Join(append(refused, err)...)
	}
	done.add(changes, refused)
	return done, nil
}

// notKept returns a *gate.NotKeptError for the changes of a gate that cannot be opened.
func notKept(changes []gate.Change, err error) error {
	lost := &gate.NotKeptError{Err: err}
	for _, c := range changes {
		if c.Body != nil && !c.Stored {
			lost.Paths = append(lost.Paths, c.Path)
		}
	}
	if lost.Paths == nil {
		return err
	}
	return lost
}

func (d *Applied) add(changes []gate.Change, refused []error) {
	why := map[string]error{}
	for _, err := range refused {
		why[pathOf(err)] = err
	}
	landed := map[string]lockkeeper.PathChange{}
	if d.Landing != nil {
		for _, c := range d.Landing.Changes {
			landed[c.Path] = c
		}
	}
	for _, c := range changes {
		to := landed[c.Path]
		d.Files = append(d.Files, Outcome{Path: c.Path, Refusal: why[c.Path], Version: to.New, Landed: to.Old != to.New})
	}
	slices.SortFunc(d.Files, func(a, b Outcome) int { return cmp.Compare(a.Path, b.Path) })
}

// Withheld returns the outcomes of changes that did not land as a whole because of err, or
// nil if err does not concern single paths.
func Withheld(changes []gate.Change, err error) *Applied {
	refused := refusals(err)
	if refused == nil {
		return nil
	}
	done := &Applied{}
	for _, c := range changes {
		why := refused[c.Path]
		done.Files = append(done.Files, Outcome{Path: c.Path, Refusal: why, HeldBack: why == nil})
	}
	return done
}

// refusals returns the errors of single paths, or nil if another error is among them.
func refusals(err error) map[string]error {
	refused := map[string]error{}
	for _, part := range lockkeeper.Parts(err) {
		path := pathOf(part)
		if path == "" {
			return nil
		}
		refused[path] = part
	}
	return refused
}

// pathOf returns the path that an error refuses, or "" if it refuses none.
func pathOf(err error) string {
	var violation *lockkeeper.LockViolationError
	var input *lockkeeper.InputError
	switch {
	case errors.As(err, &violation):
		return violation.Path
	case errors.As(err, &input) && input.Field == "path":
		return input.Value
	}
	return ""
}

// OntoCurrent makes the current versions of the files the bases of changes. So the changes also land over versions
// that others wrote. A change with a base keeps it.
func OntoCurrent(a *project.Project, changes []gate.Change) error {
	for i, c := range changes {
		if c.Base != nil {
			continue
		}
		base, err := currentBase(a, c.Path)
		if err != nil {
			return err
		}
		changes[i].Base = base
	}
	return nil
}

// currentBase returns the current version of a file, or nil for something else, which the gate refuses.
func currentBase(a *project.Project, path string) (*lockkeeper.Version, error) {
	at := filepath.Join(a.Root.Dir(), filepath.FromSlash(path))
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &lockkeeper.Version{}, nil
	case err != nil || !info.Mode().IsRegular():
		return nil, err
	}
	f, err := os.Open(at)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return nil, err
	}
	return ParseBase(a, path, hex.EncodeToString(sum.Sum(nil)))
}

// ParseBase parses the expected version of a path: "nothing", a full version, or the
// SHA-256 of the content, which matches any mode.
func ParseBase(a *project.Project, path, text string) (*lockkeeper.Version, error) {
	var v lockkeeper.Version
	if len(text) != 2*sha256.Size {
		return &v, v.UnmarshalText([]byte(text))
	}
	info, err := os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(path)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	mode := fs.FileMode(0o644)
	if info != nil {
		mode = info.Mode().Perm()
	}
	return &v, v.UnmarshalText(fmt.Appendf(nil, "%s %04o %s", lockkeeper.File, mode, text))
}
