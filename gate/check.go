package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/protect"
	"lockkeeper/tree"
)

// The names of the checks, in their order. The last is made against the disk.
const (
	checkAllowlist = "allowlist"
	checkGrant     = "grant"
	checkCoverage  = "coverage"
	checkBase      = "base"
)

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// Check makes the three checks for paths without changing anything. It answers
// one error for each path, nil for one that may be written.
func (g *Gate) Check(ctx context.Context, grant *lockkeeper.Grant, paths ...string) []error {
	answers := make([]error, len(paths))
	targets := make([]string, len(paths))
	look := g.opt.Protected.Look()
	for i, path := range paths {
		targets[i], answers[i] = g.resolve(look, path)
	}
	err := g.look(ctx, grant, func(_ lockkeeper.Reader, rec *lockkeeper.Record) error {
		for i, target := range targets {
			if answers[i] == nil {
				answers[i] = g.covered(rec, target)
			}
		}
		return nil
	})
	for i := range answers {
		if answers[i] == nil && err != nil {
			answers[i] = g.grantRefused(err, targets[i], grant)
		}
	}
	if err := g.addHolders(ctx, violations(errors.Join(answers...))); err != nil {
		for i := range answers {
			answers[i] = errors.Join(answers[i], err)
		}
	}
	return answers
}

// look reads the grant. Without one, where that is permitted, there is no record.
func (g *Gate) look(ctx context.Context, grant *lockkeeper.Grant, see func(lockkeeper.Reader, *lockkeeper.Record) error) error {
	if grant == nil || grant.ID == "" {
		if !g.opt.GrantOptional {
			return &lockkeeper.NotHeldError{GrantID: "none", Reason: "no grant was given", Next: "lockkeeper lock acquire --write PATH"}
		}
		return g.store.View(ctx, func(r lockkeeper.Reader) error { return see(r, nil) })
	}
	return g.locks.Look(ctx, grant.ID, grant.Token, see)
}

// sameGrant holds that a grant is still the one that was looked at, whose fence is
// in the name of the stage.
func sameGrant(rec *lockkeeper.Record, fence uint64) error {
	if rec == nil || rec.Fence == fence {
		return nil
	}
	return &lockkeeper.NotHeldError{GrantID: rec.ID, Reason: "it was granted anew meanwhile"}
}

// Permits makes the first check alone, for a caller that plans a later write: it refuses a
// path that a gate with these options never writes. It needs no open gate.
func Permits(root *tree.Root, opt Options, path string) error {
	opt = opt.complete(root)
	_, err := (&Gate{paths: root, opt: opt}).resolve(opt.Protected.Look(), path)
	return err
}

// resolve returns the one name of a path and makes the first check on it.
func (g *Gate) resolve(look *protect.Look, path string) (string, error) {
	l, err := g.paths.Resolve("", path, lockkeeper.Write)
	if err != nil {
		return "", err
	}
	if l.Kind == lockkeeper.Dir {
		return "", &lockkeeper.InputError{Field: "path", Value: path, Reason: "a directory, and the gate writes files", Next: "name the files in it"}
	}
	return l.Path, g.allowed(look, l.Path)
}

// allowed is the first check.
func (g *Gate) allowed(look *protect.Look, path string) error {
	refused := func(reason, next string) error {
		return &lockkeeper.LockViolationError{Check: checkAllowlist, Path: path, Reason: reason, Next: next}
	}
	if class, is := look.Below(path); is {
		return protected(path, class)
	}
	at := func(dir string) bool { return dir == path || lockkeeper.IsAncestor(dir, path) }
	if !slices.ContainsFunc(g.opt.Allowed, at) {
		return refused("it lies outside the allowlist: "+strings.Join(g.opt.Allowed, ", "), "if it belongs there, a person adds its directory to gate.allowed_write_paths in lockkeeper.yaml")
	}
	return nil
}

// protected refuses a path that nobody writes through the gate.
func protected(path string, class protect.Class) error {
	return &lockkeeper.LockViolationError{Check: checkAllowlist, Path: path, Reason: "protected: " + class.Reason(), Next: class.Next()}
}

// covered is the third check. A read lock, or a lock on a directory above, is no
// coverage.
func (g *Gate) covered(rec *lockkeeper.Record, path string) error {
	if rec == nil || rec.Covers(path) {
		return nil
	}
	held := "the grant does not hold it"
	if i, ok := lockkeeper.Find(rec.Locks, path); ok {
		held = fmt.Sprintf("the grant holds it as %s, not for writing", rec.Locks[i].Mode)
	}
	return &lockkeeper.LockViolationError{Check: checkCoverage, Path: path, GrantID: rec.ID, Reason: held,
		Next: "declare it when asking for the lock"}
}

// grantRefused is the second check's refusal for one path.
func (g *Gate) grantRefused(err error, path string, grant *lockkeeper.Grant) error {
	var gone *lockkeeper.NotHeldError
	var input *lockkeeper.InputError
	v := &lockkeeper.LockViolationError{Check: checkGrant, Path: path, Next: "acquire again"}
	if grant != nil {
		v.GrantID = grant.ID
	}
	switch {
	case errors.As(err, &gone):
		v.Reason = gone.Reason
	case errors.As(err, &input) && input.Field == "grant":
		v.Reason = input.Reason
	default:
		return err
	}
	return v
}

// addHolders adds who holds the paths of refused writes.
func (g *Gate) addHolders(ctx context.Context, refused []*lockkeeper.LockViolationError) error {
	if len(refused) == 0 {
		return nil
	}
	locks := make([]lockkeeper.Lock, len(refused))
	for i, v := range refused {
		locks[i] = lockkeeper.Lock{Target: lockkeeper.Target{Path: v.Path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	}
	found, err := g.locks.CheckConflicts(ctx, locks)
	if err != nil {
		return err
	}
	for _, v := range refused {
		for i := range found {
			if found[i].Path == v.Path && found[i].Kind == lockkeeper.Held && found[i].GrantID != v.GrantID {
				v.HeldBy = &found[i]
				break
			}
		}
	}
	return nil
}
