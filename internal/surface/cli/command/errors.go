package command

import (
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/facts"
)

// Report shows an error once, on the way out.
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
		what, next, found := CutLast(line, NextSep)
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

// Advise writes the next step to standard error, where no program takes it for a
// part of the answer; nothing where there is none.
func (p *Program) Advise(next string) {
	if next != "" {
		fmt.Fprintln(p.Err, p.Painter(p.Err)(term.Bold, "next:")+" "+term.Clean(next))
	}
}

// NextSep stands before the next step in the message of an error.
const NextSep = "; next: "

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

// Facts is an error as JSON: its class, its message and what is known.
func (p *Program) Facts(err error) map[string]any {
	out := facts.Of(err)
	var own interface{ Facts() map[string]any }
	if errors.As(err, &own) {
		out = own.Facts()
	}
	out["error"], out["message"] = lockkeeper.CodeOf(err), err.Error()
	if code := lockkeeper.CodeOf(err); code == lockkeeper.CodeBlocked || code == lockkeeper.CodeTimeout {
		out["reasons"] = p.purposes
	}
	return out
}

// ListOf is a list that JSON spells [] when it is empty.
func ListOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Legible is text from a file: as it is for a program, fit for the terminal for a
// person.
func (p *Program) Legible(text string) string {
	if !term.IsTerminal(p.Out) {
		return text
	}
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
