package hook

import (
	"slices"

	"lockkeeper/internal/project/config"
)

// usesPostgres reports whether the locks of one of the codebases are in PostgreSQL. A
// configuration that cannot be read is reported when its codebase is opened.
func (k *check) usesPostgres(places []*codebase) bool {
	return slices.ContainsFunc(places, func(p *codebase) bool {
		c, err := k.configuration(p.root)
		return err == nil && config.IsPostgres(c.Store)
	})
}
