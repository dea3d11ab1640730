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

// Limits of a list of conflicts.
const (
	conflictsShown = 8  // paths of one grant, on a terminal
	conflictLines  = 96 // lines in total, on a terminal
	reasonsRead    = 5  // grants whose reasons are read
)

// readReasons reads the reasons of the grants that block, while the store is open, so that
// Report can print them. It skips reasons that it cannot read.
func (p *Program) readReasons(ctx context.Context, a *project.Project, err error) {
	p.reasons = map[string]string{}
	read := map[string]bool{}
	for _, c := range conflictsOf(err) {
		if read[c.GrantID] || len(read) == reasonsRead {
			continue
		}
		read[c.GrantID] = true
		if e, err := a.Locks.Request(ctx, c.GrantID); err == nil && e != nil && e.Metadata["reason"] != "" {
			p.reasons[c.GrantID] = e.Metadata["reason"]
		}
	}
}

// conflictsOf returns the conflicts that an error carries.
func conflictsOf(err error) []lockkeeper.ConflictInfo {
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

// conflicts prints the conflicts of a request of holder, grouped by grant.
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
		if left < 3 { // a grant, a path, and the line "and more"
			fmt.Fprintf(p.Err, "  … and %s more\n", term.Counted(len(order)-i, "grant"))
			return
		}
		left -= p.blocker(holder, byGrant[id], min(term.Few(p.Err, conflictsShown), left-2))
	}
	if more {
		fmt.Fprintln(p.Err, "  … and more")
	}
}

// blocker prints one grant that blocks, with up to limit of the requested paths, and
// returns the number of lines.
func (p *Program) blocker(holder string, list []lockkeeper.ConflictInfo, limit int) (lines int) {
	first, now := list[0], p.Now()
	how, who := "held by", term.Clean(first.Holder)
	if first.Kind == lockkeeper.Waiting {
		how = "requested earlier by"
	}
	if first.Holder == holder {
		who = "you (" + who + ")"
	}
	if reason := p.reasons[first.GrantID]; reason != "" {
		who += ` "` + term.Clean(reason) + `"`
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

// next prints what holder can do about the first conflict.
func (p *Program) next(holder string, list []lockkeeper.ConflictInfo, orWait string) {
	if len(list) == 0 {
		return
	}
	under := process.Under(p.Env)
	step := "lockkeeper why " + list[0].GrantID + orWait
	for _, c := range list {
		switch {
		case slices.Contains(under, c.GrantID):
			fmt.Fprintf(p.Err, "  this command runs under grant %s itself, so the wait would never end\n", c.GrantID)
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
