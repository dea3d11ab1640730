package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/term"
)

// How much of what stands in the way is shown.
const (
	conflictsShown = 8  // paths of one grant, on a terminal
	conflictLines  = 96 // lines in all, on a terminal
	purposesLooked = 5  // grants whose reasons are looked up
)

// purpose finds out why those hold their grants who are in the way, while the
// store is open. What cannot be found is left out.
func (p *Program) purpose(ctx context.Context, a *project.Project, err error) {
	list := inTheWay(err)
	p.purposes = map[string]string{}
	looked := map[string]bool{}
	for _, c := range list {
		if looked[c.GrantID] || len(looked) == purposesLooked {
			continue
		}
		looked[c.GrantID] = true
		if e, err := a.Locks.Request(ctx, c.GrantID); err == nil && e != nil && e.Metadata["reason"] != "" {
			p.purposes[c.GrantID] = e.Metadata["reason"]
		}
	}
}

// inTheWay is the conflicts that an error carries.
func inTheWay(err error) []lockkeeper.ConflictInfo {
	var blocked *lockkeeper.BlockedError
	var timeout *lockkeeper.LockTimeoutError
	switch {
	case errors.As(err, &blocked):
		return blocked.Conflicts
	case errors.As(err, &timeout):
		return timeout.Conflicts
	}
	return nil
}

// conflicts lists who stands in the way of holder, a block for each grant.
func (p *Program) conflicts(holder string, list []lockkeeper.ConflictInfo, more bool) {
	var order []string
	byGrant := map[string][]lockkeeper.ConflictInfo{}
	for _, c := range list {
		if byGrant[c.GrantID] == nil {
			order = append(order, c.GrantID)
		}
		byGrant[c.GrantID] = append(byGrant[c.GrantID], c)
	}
	left := term.Few(p.Err, conflictLines)
	for i, id := range order {
		if left < 3 { // a grant, a path, and that there are more
			fmt.Fprintf(p.Err, "  … and %s more\n", term.Counted(len(order)-i, "grant"))
			return
		}
		left -= p.blocker(holder, byGrant[id], min(term.Few(p.Err, conflictsShown), left-2))
	}
	if more {
		fmt.Fprintln(p.Err, "  … and more")
	}
}

// blocker shows one grant that stands in the way, with so many of the paths
// asked for, and returns how many lines that took.
func (p *Program) blocker(holder string, list []lockkeeper.ConflictInfo, limit int) (lines int) {
	first, now := list[0], p.Now()
	how, who := "held by", term.Clean(first.Holder)
	if first.Kind == lockkeeper.Waiting {
		how = "requested earlier by"
	}
	if first.Holder == holder {
		who = "you (" + who + ")"
	}
	if purpose := p.purposes[first.GrantID]; purpose != "" {
		who += ` "` + term.Clean(purpose) + `"`
	}
	end := "until released"
	if first.ExpiresAt != nil {
		end = "expires " + term.Until(first.ExpiresAt, now) + " at " + term.Stamp(*first.ExpiresAt)
	}
	fmt.Fprintf(p.Err, "  %s %s for %s since %s, %s, grant %s\n", how, who, term.Span(now.Sub(first.AcquiredAt)), term.Stamp(first.AcquiredAt), end, first.GrantID)
	for i, c := range list {
		if i == limit && i+1 < len(list) {
			fmt.Fprintf(p.Err, "    … and %d more\n", len(list)-i)
			return i + 2
		}
		fmt.Fprintf(p.Err, "    %s %s (against %s %s)\n", c.Mode, term.Clean(c.Path), c.BlockingMode, term.Clean(c.BlockingPath))
	}
	return len(list) + 1
}

// next says what holder can do about the first who is in the way.
func (p *Program) next(holder string, list []lockkeeper.ConflictInfo, orWait string) {
	if len(list) == 0 {
		return
	}
	under := process.Under(p.Env)
	step := "lockkeeper why " + list[0].GrantID + orWait
	for _, c := range list {
		switch {
		case slices.Contains(under, c.GrantID):
			fmt.Fprintf(p.Err, "  this command runs under grant %s itself: waiting for it would never end\n", c.GrantID)
			step = "use the locks you hold, or request all of them in lock exec"
		case c.Holder == holder && c.Kind == lockkeeper.Held && holder != "":
			step = "lockkeeper lock release " + c.GrantID
		default:
			continue
		}
		break
	}
	p.Advise(step)
}
