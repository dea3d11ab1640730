package cli

import (
	"errors"
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/app"
)

// report shows an error once, on the way out.
func (p *program) report(err error) {
	if err == nil || err.Error() == "" {
		return
	}
	if p.json && p.Out.err == nil {
		p.printJSON(p.facts(err))
		return
	}
	var blocked *lockkeeper.BlockedError
	var timeout *lockkeeper.LockTimeoutError
	switch {
	case errors.As(err, &blocked):
		p.say("blocked; nothing was taken")
		p.conflicts(blocked.Holder, blocked.Conflicts, blocked.Truncated)
		p.next(blocked.Holder, blocked.Conflicts, ", or stand in line with --wait 5m")
	case errors.As(err, &timeout):
		p.say(fmt.Sprintf("timed out after waiting %s; nothing was taken", span(timeout.Waited)))
		p.conflicts(timeout.Holder, timeout.Conflicts, false)
		p.next(timeout.Holder, timeout.Conflicts, "")
	case len(violations(err)) > 1:
		p.violations(err)
	default:
		p.say(err.Error())
	}
	var refused *lockkeeper.RefusedError
	if errors.As(err, &refused) {
		p.conditions(refused.Conditions)
	}
}

// say writes a message to standard error, its next step on a line of its own.
func (p *program) say(message string) {
	paint := p.painter(p.Err)
	for i, line := range strings.Split(message, "\n") {
		what, next, found := cutLast(line, nextSep)
		if i == 0 {
			what = paint(red, "lockkeeper:") + " " + clean(what)
		} else {
			what = "  " + clean(what)
		}
		fmt.Fprintln(p.Err, what)
		if found {
			p.advise(next)
		}
	}
}

// advise writes the next step to standard error, where no program takes it for a
// part of the answer; nothing where there is none.
func (p *program) advise(next string) {
	if next != "" {
		fmt.Fprintln(p.Err, p.painter(p.Err)(bold, "next:")+" "+clean(next))
	}
}

// nextSep stands before the next step in the message of an error.
const nextSep = "; next: "

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (p *program) conditions(list []lockkeeper.Condition) {
	for _, c := range list {
		holds := "does not hold"
		if c.Held {
			holds = "holds"
		}
		line := fmt.Sprintf("  condition %q %s", c.Name, holds)
		if c.Fact != "" {
			line += ": " + clean(c.Fact)
		}
		fmt.Fprintln(p.Err, line)
	}
}

// facts is an error as JSON: its class, its message and what is known.
func (p *program) facts(err error) map[string]any {
	out := app.Facts(err)
	var claimed *claimBlocked
	if errors.As(err, &claimed) {
		out = claimed.facts()
	}
	out["error"], out["message"] = lockkeeper.CodeOf(err), err.Error()
	if code := lockkeeper.CodeOf(err); code == lockkeeper.CodeBlocked || code == lockkeeper.CodeTimeout {
		out["reasons"] = p.purposes
	}
	return out
}

// listOf is a list that JSON spells [] when it is empty.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
