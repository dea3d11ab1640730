package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
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
		p.next(blocked.Holder, blocked.Conflicts, ", or wait with --wait 5m")
	case errors.As(err, &timeout):
		p.Say(fmt.Sprintf("timed out after waiting %s; nothing was acquired", term.Span(timeout.Waited)))
		p.conflicts(timeout.Holder, timeout.Conflicts, false)
		p.next(timeout.Holder, timeout.Conflicts, "")
	case len(violations(err)) > 1:
		p.violations(err)
	default:
		p.Say(err.Error())
	}
	var refused *lockkeeper.RefusedError
	if errors.As(err, &refused) {
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
	if next != "" {
		fmt.Fprintln(p.Err, p.Painter(p.Err)(term.Bold, "next:")+" "+term.Clean(next))
	}
}

// CutNext splits a stored message, such as the reason of a failed item, into what happened
// and the next step.
func CutNext(message string) (what, next string, found bool) { return CutLast(message, "; next: ") }

// CutLast splits s at the last sep.
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
			line += ": " + term.Clean(c.Fact)
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

// ListOf returns a list that JSON writes as [] if it is empty.
func ListOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
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

// violationsShown is how many refusals of one landing are shown on a terminal.
const violationsShown = 16

// violations lists the refusals of the gate in an error that may join several.
func violations(err error) (list []*lockkeeper.LockViolationError) {
	for _, part := range lockkeeper.Parts(err) {
		var v *lockkeeper.LockViolationError
		if errors.As(part, &v) {
			list = append(list, v)
		}
	}
	return list
}

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
