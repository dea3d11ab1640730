package dossier

import (
	"slices"

	"lockkeeper/internal/flow"
)

// Meets reports whether an item is one of those that the policy names: by its ratings
// alone, whatever was decided of it, or of one like it, before.
func (p Policy) Meets(item flow.Ready) bool {
	return p.All || p.Where != nil && !slices.ContainsFunc(p.Where, func(c Condition) bool { return !c.holds(item) })
}
