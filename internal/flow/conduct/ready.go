package conduct

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/project"
)

// MissingLogin says what the default agent lacks to call its API: it has no login, and no key is
// set. It returns "" if one is there, or if the program is unknown.
func MissingLogin(a *project.Project) string {
	named, known := program.ByName(a.Config.Agent.Name)
	home, _ := a.Env("HOME")
	if !known || named.Login == "" || len(a.Config.Agent.Command) > 0 {
		return ""
	}
	dir, moved := named.MovedDir(a.Env)
	if !moved {
		dir = filepath.Join(home, named.Dir)
	}
	login := filepath.Join(dir, named.Login)
	if _, err := os.Stat(login); err == nil {
		return ""
	}
	variables := named.Variables(a.Env)
	if len(variables) > len(named.APIVariables) {
		return "" // the program uses another provider of the API, which has a login of its own
	}
	for _, variable := range variables {
		if prefix, all := strings.CutSuffix(variable, "*"); all {
			for _, key := range []string{"API_KEY", "AUTH_TOKEN", "OAUTH_TOKEN", "CODE_OAUTH_TOKEN", "ACCESS_TOKEN", "APPLICATION_CREDENTIALS"} {
				if value, _ := a.Env(prefix + key); value != "" {
					return ""
				}
			}
		} else if value, _ := a.Env(variable); value != "" {
			return ""
		}
	}
	return named.Name + " has no login: " + login + " is missing, and no variable has a key of its API"
}

// AllowsFiles reports whether a path that the gate may write to exists.
func AllowsFiles(a *project.Project) bool {
	return slices.ContainsFunc(a.Config.Gate.AllowedWritePaths, func(path string) bool {
		_, err := os.Lstat(a.Below(filepath.FromSlash(path)))
		return err == nil
	})
}
