package cli

import (
	"errors"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/app"
)

// violationsShown is how many refusals of one commit are shown on a terminal.
const violationsShown = 16

// violations lists the refusals of the gate in an error that may join several.
func violations(err error) (list []*lockkeeper.LockViolationError) {
	for _, part := range app.Parts(err) {
		var v *lockkeeper.LockViolationError
		if errors.As(part, &v) {
			list = append(list, v)
		}
	}
	return list
}

// violations shows joined refusals, a line each, and each way out of them once.
func (p *program) violations(err error) {
	lines, ways := []string{}, []string{}
	parts := app.Parts(err)
	limit := few(p.Err, violationsShown)
	for i, part := range parts {
		if i == limit && i+1 < len(parts) {
			lines = append(lines, "… and "+counted(len(parts)-i, "more refusal"))
			break
		}
		what, next, _ := cutLast(part.Error(), nextSep)
		lines = append(lines, what)
		if next != "" && !slices.Contains(ways, next) {
			ways = append(ways, next)
		}
	}
	p.say(strings.Join(lines, "\n") + nextSep + strings.Join(ways, "; or "))
}
