package landing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/project"
)

// Outcome is what became of one wanted change.
type Outcome struct {
	Path     string
	Landed   bool               // false without a refusal: it was so already
	Version  lockkeeper.Version // that landed
	Refusal  error
	HeldBack bool // because others were refused that it was to land with
}

// Applied is what became of changes that were to land together.
type Applied struct {
	Landing *lockkeeper.Landing // nil: nothing landed
	Files   []Outcome           // by path
}

// Apply lands changes as one unit, under a grant of this user if one is named.
// What the gate refuses is left out, and kept by the gate, unless they are to
// land as a whole: then one refusal refuses them all. The paths of changes are
// from the root, as File makes them.
func Apply(ctx context.Context, a *project.Project, grantID string, changes []gate.Change, whole bool) (*Applied, error) {
	grant, err := a.GrantOf(grantID)
	if err != nil {
		return nil, err
	}
	return ApplyUnder(ctx, a, grant, changes, whole)
}

// ApplyUnder is Apply under a grant whose token the caller has; nil for none.
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

// notKept says that a gate which cannot be opened has kept nothing of the changes.
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

// add tells what became of each change, by path.
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

// Withheld is what became of changes that were to land as a whole and did not,
// because of err; nil when err is not about single paths.
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

// refusals is why changes of single paths did not get through; nil when
// something else went wrong, too.
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

// pathOf is the path whose change an error refuses; empty when it does not.
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

// ParseBase reads what a path is expected to hold: "nothing", a version in full,
// or the SHA-256 of its content alone, whatever its mode is.
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
