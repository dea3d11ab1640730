package acts

import (
	"context"
	"errors"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
)

// DataPolicy is the policy of requests for resources and operations that name none.
const DataPolicy = "dal"

// NodeLocks returns the locks of named nodes: of each node and its files, or with a slash at the
// end of a name of everything below it as well.
func NodeLocks(a *project.Project, mode lockkeeper.Mode, names ...string) (list []lockkeeper.Lock, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	set, err := resource.Of(a.Config)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		locks, err := set.NodeLocks(name, mode)
		if err != nil {
			return nil, err
		}
		list = append(list, locks...)
	}
	return a.Resolved(list)
}

// PolicyFor returns the policy of a request: the named one, or that of resources if it locks
// one, or else the default.
func PolicyFor(named string, locks []lockkeeper.Lock, otherwise string) string {
	if named != "" {
		return named
	}
	for _, l := range locks {
		if l.Level() > 0 {
			return DataPolicy
		}
	}
	return otherwise
}

// An Operation is a named operation with its locks, ready to run.
type Operation struct {
	resource.Need
	Locks []lockkeeper.Lock // the resolved locks
}

// FindOperation finds an operation that can run a command. It refuses an operation that needs no
// lock. In a codebase with a claims file it also refuses an operation on files, which must be
// claimed so that other tools see the claim.
func FindOperation(a *project.Project, name string, args resource.Args, argv []string) (op Operation, err error) {
	set, err := resource.Of(a.Config)
	if err != nil {
		return op, err
	}
	if op.Need, err = set.Operation(name, args); err != nil {
		return op, err
	}
	act := "op " + op.Need.Operation
	switch {
	case len(op.Need.Locks) == 0:
		return op, &lockkeeper.RefusedError{Act: act, Reason: "it needs no lock: " + op.Why, Next: shellword.Join(argv)}
	case op.Need.Locks[0].Level() == 0 && a.Config.LocksFile != "":
		return op, &lockkeeper.RefusedError{Act: act, Reason: "its files must be claimed, so that " + a.Config.LocksFile + " shows them to others",
			Next: strings.TrimSuffix("lockkeeper claim "+strings.Join(op.Resources, " ")+" -- "+shellword.Join(argv), " -- ")}
	}
	op.Locks, err = a.Resolved(op.Need.Locks)
	return op, err
}

// Unattended returns an error if the operation needs the approval of a person, whom a program
// cannot ask.
func (op Operation) Unattended() error {
	if !op.Approval {
		return nil
	}
	return &lockkeeper.RefusedError{Act: "op " + op.Need.Operation, Reason: "it needs the approval of a person", Next: "lockkeeper op " + op.Need.Operation + " --approve, on a terminal"}
}

// Under does work under the locks of the operation, and releases them. It does not wait for
// them. An operation that needs an approval is refused.
func (op Operation) Under(ctx context.Context, a *project.Project, holder string, work func(context.Context, *lockkeeper.Grant) error) (err error) {
	if err := op.Unattended(); err != nil {
		return err
	}
	self, err := process.Self()
	if err != nil {
		return err
	}
	g, err := a.Hold(ctx, lockkeeper.Request{Holder: holder, Policy: DataPolicy, Locks: op.Locks, Process: &self, Kept: true,
		Metadata: map[string]string{"operation": op.Need.Operation, "reason": op.Need.Operation}}, 0)
	if err != nil {
		return err
	}
	g.Keep()
	defer func() { err = errors.Join(err, g.Release(context.WithoutCancel(ctx))) }()
	held, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(g.Context(), func() { stop(context.Cause(g.Context())) })()
	return work(held, &g.Grant)
}

// WritesMap reports whether the operation writes a map as a whole, so that the cap on map jobs
// of a project applies.
func (op Operation) WritesMap() bool {
	for _, l := range op.Locks {
		if l.Level() == mapLevel && l.Mode == lockkeeper.Write {
			return true
		}
	}
	return false
}

// mapLevel is the level of project/p1/map/m2.
const mapLevel = 2

// Replacement returns the directory that a program wants to replace, and the one with its new
// content. Both are in the codebase, so that nothing else of this machine is copied.
func Replacement(a *project.Project, dir, from string) (path, source string, err error) {
	at, err := a.Root.Resolve(a.Root.Dir(), dir+"/", lockkeeper.Write)
	if err != nil {
		return "", "", err
	}
	src, err := a.Root.Resolve(a.Root.Dir(), from+"/", lockkeeper.Read)
	if err != nil {
		return "", "", err
	}
	if src.Path == lockkeeper.Root || src.Path == lockkeeper.GitTarget {
		return "", "", &lockkeeper.InputError{Field: "from", Value: from, Reason: "not a directory of new content", Next: "name a directory in the codebase"}
	}
	return at.Path, a.Below(src.Path), nil
}
