package hook

import (
	"slices"

	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
)

// usesPostgres reports whether the locks of one of the codebases are in PostgreSQL. A
// configuration that cannot be read is reported when its codebase is opened.
func (k *check) usesPostgres(places []*codebase) bool {
	return slices.ContainsFunc(places, func(p *codebase) bool {
		c, err := project.LoadConfig(project.Settings{Dir: p.root, Store: k.proc.Store, Env: k.proc.Env})
		return err == nil && config.IsPostgres(c.Store)
	})
}
