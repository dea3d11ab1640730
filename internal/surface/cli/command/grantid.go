package command

import (
	"lockkeeper/internal/project"
)

// GrantID is a flag for the id of a grant. One that is none is refused before
// anything else is looked at: an empty $grant makes the next word its value.
type GrantID string

func (g *GrantID) String() string { return string(*g) }

func (g *GrantID) Type() string { return "id" }

func (g *GrantID) Set(text string) error {
	*g = GrantID(text)
	return project.CheckGrantID(text)
}
