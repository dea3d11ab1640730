package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/facts"
)

// Report prints an error, once, before the program ends.
func (p *Program) Report(err error) {
	if err == nil || err.Error() == "" {
		return
	}
	if p.JSON && p.Out.Err == nil {
		p.PrintJSON(p.Facts(err))
		return
	}
	var blocked *lockkeeper.BlockedError
	var timeout *lockkeeper.LockTimeoutError
	switch {
	case errors.As(err, &blocked):
		p.Say("blocked; nothing was acquired")
		p.conflicts(blocked.Holder, blocked.Conflicts, blocked.Truncated)
		if next := lockkeeper.NextStep(err); next != "" { // the command does not wait for holders
			p.Advise(next)
			break
		}
		p.next(blocked.Holder, blocked.Conflicts, ", or wait with --wait 5m")
	case errors.As(err, &timeout):
		p.Say(fmt.Sprintf("timed out after waiting %s; nothing was acquired", term.Span(timeout.Waited)))
		p.conflicts(timeout.Holder, timeout.Conflicts, false)
		p.next(timeout.Holder, timeout.Conflicts, "")
	case len(lockkeeper.Violations(err)) > 1:
		p.violations(err)
	default:
		p.Say(err.Error())
	}
	if refused, ok := errors.AsType[*lockkeeper.RefusedError](err); ok {
		p.conditions(refused.Conditions)
	}
}

// Say writes a message to standard error, its next step on a line of its own.
func (p *Program) Say(message string) {
	paint := p.Painter(p.Err)
	for i, line := range strings.Split(message, "\n") {
		what, next, found := CutNext(line)
		if i == 0 {
			what = paint(term.Red, "lockkeeper:") + " " + term.Clean(what)
		} else {
			what = "  " + term.Clean(what)
		}
		fmt.Fprintln(p.Err, what)
		if found {
			p.Advise(next)
		}
	}
}

// Advise writes the next step, if any, to standard error, so that programs do not read it
// as part of the answer.
func (p *Program) Advise(next string) {
	if next != "" && !p.Quiet {
		fmt.Fprintln(p.Err, p.Painter(p.Err)(term.Bold, "next:")+" "+term.Clean(lockkeeper.LocalTimes(next)))
	}
}

// Note writes a remark that is not part of the answer to standard error.
func (p *Program) Note(format string, args ...any) {
	if !p.Quiet {
		fmt.Fprintf(p.Err, "note: "+format+"\n", args...)
	}
}

// CutNext splits a stored message, such as the reason of a failed item, into what happened
// and the next step.
func CutNext(message string) (what, next string, found bool) {
	return CutLast(lockkeeper.LocalTimes(message), "; next: ")
}

func CutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (p *Program) conditions(list []lockkeeper.Condition) {
	for _, c := range list {
		holds := "does not hold"
		if c.Held {
			holds = "holds"
		}
		line := fmt.Sprintf("  condition %q %s", c.Name, holds)
		if c.Fact != "" {
			line += ": " + term.Clean(lockkeeper.LocalTimes(c.Fact))
		}
		fmt.Fprintln(p.Err, line)
	}
}

// Facts returns an error for JSON: its class, its message and its facts.
func (p *Program) Facts(err error) map[string]any {
	out := facts.Of(err)
	var own interface{ Facts() map[string]any }
	if errors.As(err, &own) {
		out = own.Facts()
	}
	out["error"], out["message"] = lockkeeper.CodeOf(err), err.Error()
	if code := lockkeeper.CodeOf(err); code == lockkeeper.CodeBlocked || code == lockkeeper.CodeTimeout {
		out["reasons"] = p.reasons
	}
	return out
}

// Legible returns the content of a file, with each line cleaned if it goes to a terminal.
func (p *Program) Legible(text string) string {
	if !term.IsTerminal(p.Out) {
		return text
	}
	return CleanLines(text)
}

// CleanLines cleans each line of a text, and keeps its tabs.
func CleanLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for i, part := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(term.Clean(part))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const violationsShown = 16

// violations prints joined refusals, one per line, and then each different next step.
func (p *Program) violations(err error) {
	lines, steps := []string{}, []string{}
	parts := lockkeeper.Parts(err)
	limit := term.Few(p.Err, violationsShown)
	for i, part := range parts {
		if i == limit && i+1 < len(parts) {
			lines = append(lines, "… and "+term.Counted(len(parts)-i, "more refusal"))
			break
		}
		lines = append(lines, lockkeeper.Message(part))
		if next := lockkeeper.NextStep(part); next != "" && !slices.Contains(steps, next) {
			steps = append(steps, next)
		}
	}
	p.Say(strings.Join(lines, "\n"))
	p.Advise(strings.Join(steps, "; or "))
}

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
		if left < 3 { // no room for a grant, a path, and the line "and more"
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
	fmt.Fprintf(p.Err, "  %s %s for %s since %s, %s, grant %s\n", how, who, term.Span(now.Sub(first.AcquiredAt)), term.Stamp(first.AcquiredAt), end, lockkeeper.ShortID(first.GrantID))
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
	step := "lockkeeper why " + lockkeeper.ShortID(list[0].GrantID) + orWait
	for _, c := range list {
		switch {
		case slices.Contains(under, c.GrantID):
			fmt.Fprintf(p.Err, "  this command runs under grant %s itself, so the wait would never end\n", lockkeeper.ShortID(c.GrantID))
			step = "use the locks you hold, or request all of them in lock exec"
		case c.Holder == holder && c.Kind == lockkeeper.Held && holder != "":
			step = "lockkeeper lock release " + lockkeeper.ShortID(c.GrantID)
		default:
			continue
		}
		break
	}
	p.Advise(step)
}
