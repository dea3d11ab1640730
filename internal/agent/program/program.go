package program

import (
	"path/filepath"
	"slices"
)

// A Program describes one agent program.
type Program struct {
	Name string // its name in agent.name of the configuration, and of its executable

	// The program's own directory, with its login, settings and sessions.
	Dir            string   // in the user's home
	DirVariable    string   // the environment variable that moves it
	VariableIsHome bool     // the variable names the directory that contains Dir, not Dir itself
	Login          string   // the file with the login
	Token          []string // the members that lead to the refresh token in the login
	Settings       []string // the files and directories with settings, as patterns
	BesideDir      []string // settings that are next to Dir if the variable is unset, and in it otherwise

	// Files that make the program start other programs, or stop asking before it does.
	HookFiles    []string // the files in a project with its hooks
	ProjectFiles []string // further files and directories in a project
	HomeFiles    []string // further files and directories in the user's home
	SystemDir    string   // the settings of an administrator

	Signs        []string            // environment variables that it sets for the commands it runs
	APIVariables []string            // environment variables with the keys of its API; a name can end in *
	Providers    map[string][]string // further variables, by the variable that selects another provider of the API

	LimitsCost bool // it reports the cost of a call and accepts a limit for it
}

// All lists the programs. The first is the default.
func All() []Program { return table }

// Any is the name of an agent that is any other command.
const Any = "command"

// Names lists the names of all agents: the programs, and Any.
func Names() (list []string) {
	for _, p := range table {
		list = append(list, p.Name)
	}
	return append(list, Any)
}

// ByName finds a program.
func ByName(name string) (p Program, known bool) {
	i := slices.IndexFunc(table, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, false
	}
	return table[i], true
}

// MovedDir returns the program's own directory if its variable is set in an environment.
func (p Program) MovedDir(env func(string) (string, bool)) (dir string, moved bool) {
	dir, _ = env(p.DirVariable)
	if dir != "" && p.VariableIsHome {
		dir = filepath.Join(dir, p.Dir)
	}
	return dir, dir != ""
}

// Variables lists the environment variables with the keys of the program's API.
func (p Program) Variables(env func(string) (string, bool)) []string {
	list := slices.Clone(p.APIVariables)
	for selector, more := range p.Providers {
		if value, _ := env(selector); value != "" && value != "0" && value != "false" {
			list = append(list, more...)
		}
	}
	return list
}
