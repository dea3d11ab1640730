package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/lock"
)

// OwnLock has the options of a command that needs locks for its own short work.
type OwnLock struct {
	Grant GrantID // an existing grant; empty: acquire one
	Wait  term.Duration
}

// Flags adds the flags of the options.
func (o *OwnLock) Flags(f *pflag.FlagSet) {
	f.Var(&o.Grant, "grant", "the `id` of your grant that holds the paths (default: acquire the locks for this)")
	f.Var(&o.Wait, "wait", "how long to wait if blocked (default: do not wait)")
}

// Under does work on files under a grant: the named grant of this user, or a new one that
// is released after the work.
func (p *Program) Under(cmd *cobra.Command, a *project.Project, reason string, o OwnLock, paths []string, work func(context.Context, *lockkeeper.Grant) error) error {
	ctx, stop := Interruptible(cmd.Context())
	defer stop()
	if o.Grant != "" {
		grant, err := a.GrantOf(string(o.Grant))
		if err == nil {
			err = work(ctx, grant)
		}
		if err != nil {
			return Interrupted(ctx, errors.Join(err, p.ExplainGrant(ctx, a, o.Grant, err)))
		}
		return nil
	}
	holder, err := process.Holder()
	if err != nil {
		return err
	}
	own := acts.Taking(holder, func(ctx context.Context, req lockkeeper.Request) (*lock.Grant, error) {
		return p.Take(ctx, a, req, time.Duration(o.Wait), a.Hold)
	})
	return own(ctx, reason, paths, func(ctx context.Context, grant *lockkeeper.Grant) error {
		if err := work(ctx, grant); err != nil {
			return Interrupted(ctx, err)
		}
		return nil
	})
}

// Take acquires a request with one of the acquire functions of the project, and tells a
// person on a terminal who blocks it.
func (p *Program) Take(ctx context.Context, a *project.Project, req lockkeeper.Request, wait time.Duration,
	acquire func(context.Context, lockkeeper.Request, time.Duration) (*lock.Grant, error)) (*lock.Grant, error) {
	if err := p.refuseDeadlock(ctx, a, req, wait); err != nil {
		return nil, err
	}
	p.announce(ctx, a, req, wait)
	g, err := acquire(ctx, req, wait)
	if err != nil {
		return nil, Interrupted(ctx, err)
	}
	return g, nil
}

// refuseDeadlock refuses to wait for a grant that this command runs under, because that
// grant ends only after the command.
func (p *Program) refuseDeadlock(ctx context.Context, a *project.Project, req lockkeeper.Request, wait time.Duration) error {
	under := process.Under(p.Env)
	if len(under) == 0 || wait <= 0 {
		return nil
	}
	found, err := a.Locks.CheckConflicts(ctx, req.Locks)
	if err != nil {
		return Interrupted(ctx, err)
	}
	for _, c := range found {
		if slices.Contains(under, c.GrantID) {
			return &lockkeeper.BlockedError{Holder: req.Holder, Conflicts: found}
		}
	}
	return nil
}

// announce tells a person on a terminal who blocks the request.
func (p *Program) announce(ctx context.Context, a *project.Project, req lockkeeper.Request, wait time.Duration) {
	if wait <= 0 || p.JSON || !term.IsTerminal(p.Err) {
		return
	}
	found, err := a.Locks.CheckConflicts(ctx, req.Locks)
	if err != nil || len(found) == 0 {
		return // the request itself reports errors
	}
	p.readReasons(ctx, a, &lockkeeper.BlockedError{Conflicts: found})
	fmt.Fprintf(p.Err, "waiting up to %s:\n", term.Span(wait))
	p.conflicts(req.Holder, found, false)
}

// ExplainGrant adds to a refusal that the grant this command runs under cannot be used: its
// token stays with the supervisor. The command may edit the file in place instead.
func (p *Program) ExplainGrant(ctx context.Context, a *project.Project, grant GrantID, refusal error) error {
	under := process.Under(p.Env)
	if len(under) == 0 || grant != "" && !slices.Contains(under, string(grant)) {
		return nil
	}
	for _, v := range violations(refusal) {
		if v.Check != "grant" {
			continue
		}
		held, err := coverage.Writer(ctx, a, v.Path)
		if err != nil {
			return err
		}
		v.Reason += "; lock exec keeps the token of its grant"
		next := "acquire a grant with lockkeeper lock acquire --write PATH, and give its id with --grant"
		if held != nil && slices.Contains(under, held.ID) {
			v.Reason += "; what it runs may edit the file directly, this lock covers it"
			next = "edit " + v.Path + " in place"
		}
		if _, kept, found := strings.Cut(v.Next, "; "); found { // where the content is kept
			next += "; " + kept
		}
		v.Next = next
	}
	return nil
}

// UndoStep returns the command that undoes a landing, while its grant is held and after.
func UndoStep(landing uint64, grant GrantID) string {
	if grant == "" {
		return fmt.Sprintf("lockkeeper undo %d undoes it", landing)
	}
	return fmt.Sprintf("lockkeeper undo %d --grant %s undoes it; after lock release: lockkeeper undo %d", landing, grant, landing)
}

// GrantID is a flag for the id of a grant. It refuses an invalid id at once, because an
// empty $grant makes the next word its value.
type GrantID string

func (g *GrantID) String() string { return string(*g) }

func (g *GrantID) Type() string { return "id" }

// Set implements pflag.Value.
func (g *GrantID) Set(text string) error {
	*g = GrantID(text)
	return project.CheckGrantID(text)
}
