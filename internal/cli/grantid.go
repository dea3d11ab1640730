package cli

import "lockkeeper/internal/app"

// grantID is a flag for the id of a grant. One that is none is refused before
// anything else is looked at: an empty $grant makes the next word its value.
type grantID string

func (g *grantID) String() string { return string(*g) }

func (g *grantID) Type() string { return "id" }

func (g *grantID) Set(text string) error {
	*g = grantID(text)
	return app.CheckGrantID(text)
}
