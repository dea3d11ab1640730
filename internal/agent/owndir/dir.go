package owndir

import "path/filepath"

// A Dir is the directory that the program of an agent keeps its own files in.
type Dir struct {
	path     string // the person's, absolute; empty: it cannot be used, so copies begin empty
	name     string // in a copy, and in a home directory
	variable string // names the directory, or the one above it if inHome is true
	inHome   bool
	login    string
	token    []string // the members that lead to the refresh token in the login
	settings []string // files and directories that the program obeys, as patterns
	lock     string   // a file that no agent can reach
	usable   func(path string) bool
	aside    map[string]string // settings from other directories, by their names in a copy
}

// known describes the directories of the agents. Names were read from Claude Code 2.1.197,
// openai/codex at 0656615 and Gemini CLI 0.61.0.
var known = map[string]Dir{
	"claude": {
		name: ".claude", variable: "CLAUDE_CONFIG_DIR", login: ".credentials.json", token: []string{"claudeAiOauth", "refreshToken"},
		settings: []string{".claude.json", "settings.json", "settings.local.json", "CLAUDE.md", "agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills"},
	},
	"codex": {
		name: ".codex", variable: "CODEX_HOME", login: "auth.json", token: []string{"tokens", "refresh_token"},
		settings: []string{"config.toml", "*.config.toml", "hooks.json", "AGENTS.md", "AGENTS.override.md", ".env", "agents", "hooks", "plugins", "prompts", "rules", "skills"},
	},
	"gemini": {
		name: ".gemini", variable: "GEMINI_CLI_HOME", inHome: true, login: "oauth_creds.json", token: []string{"refresh_token"},
		settings: []string{"settings.json", "GEMINI.md", ".env", "trustedFolders.json", "trusted_hooks.json", "google_accounts.json", "installation_id", "gemini-credentials.json",
			"agents", "commands", "extensions", "hooks", "policies", "skills"},
	},
}

// Of returns the directory of an agent as an environment names it, or nil if the agent has
// none. Neither a directory nor a login is used for which usable reports false. lock is a
// file that no agent can reach; it is made if needed, and shared by all runs of a user.
func Of(agent string, env func(string) (string, bool), lock string, usable func(path string) bool) *Dir {
	d, is := known[agent]
	if !is {
		return nil
	}
	d.lock, d.usable = lock, usable
	home, _ := env("HOME")
	moved, _ := env(d.variable)
	switch {
	case moved != "" && d.inHome:
		d.path = filepath.Join(moved, d.name)
	case moved != "":
		d.path = moved
	default:
		d.path = filepath.Join(home, d.name)
		if agent == "claude" { // beside its directory, unless that was moved
			d.aside = map[string]string{".claude.json": filepath.Join(home, ".claude.json")}
		}
	}
	if !filepath.IsAbs(d.path) || !usable(d.path) {
		d.path, d.aside = "", nil
	}
	return &d
}
