package command

import (
	"errors"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/surface/cli/term"
)

// violationsShown is how many refusals of one commit are shown on a terminal.
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

// violations shows joined refusals, a line each, and each way out of them once.
func (p *Program) violations(err error) {
	lines, ways := []string{}, []string{}
	parts := lockkeeper.Parts(err)
	limit := term.Few(p.Err, violationsShown)
	for i, part := range parts {
		if i == limit && i+1 < len(parts) {
			lines = append(lines, "… and "+term.Counted(len(parts)-i, "more refusal"))
			break
		}
		what, next, _ := CutLast(part.Error(), NextSep)
		lines = append(lines, what)
		if next != "" && !slices.Contains(ways, next) {
			ways = append(ways, next)
		}
	}
	p.Say(strings.Join(lines, "\n") + NextSep + strings.Join(ways, "; or "))
}
