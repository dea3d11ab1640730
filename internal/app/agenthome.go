package app

import (
	"path/filepath"
	"strings"

	"lockkeeper/internal/protect"
)

// agentPlaces are where agents with these names may write besides their copies: where it is
// configured, and where they keep their own state.
func (a *App) agentPlaces(agents []string) (list []string) {
	home, _ := a.env("HOME")
	places := a.Config.Agent.Caches
	for _, name := range agents {
		places = append(places[:len(places):len(places)], a.homesOf(name)...)
	}
	for _, place := range places {
		if rest, ok := strings.CutPrefix(place, "~/"); ok {
			place = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(place) {
			place = a.below(place)
		}
		list = append(list, place)
	}
	return list
}

// homesOf are the places that an agent keeps its own state in: its login, which it renews
// while it works, and its sessions.
func (a *App) homesOf(name string) []string {
	switch name {
	case "codex":
		return a.moved("CODEX_HOME", "", "~/.codex")
	case "gemini":
		return a.moved("GEMINI_CLI_HOME", ".gemini", "~/.gemini")
	case "claude":
		return a.moved("CLAUDE_CONFIG_DIR", "", "~/.claude", "~/.claude.json")
	}
	return nil
}

// moved is the place below the directory that a variable names; without it, the usual ones.
// One that meets the codebase or Lockkeeper's own state is none: agents write nothing there
// but through the gate.
func (a *App) moved(variable, below string, usual ...string) []string {
	dir, _ := a.env(variable)
	if dir == "" {
		return usual
	}
	place := filepath.Join(dir, below)
	if !filepath.IsAbs(place) || meets(place, a.Root.Dir()) || meets(place, a.state) {
		return nil
	}
	return []string{place}
}

// meets reports whether one of two places is in the other, by their true names.
func meets(a, b string) bool {
	a, b = protect.Real(a)+"/", protect.Real(b)+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}
