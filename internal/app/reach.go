package app

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/pipeline"
	"lockkeeper/internal/protect"
	"lockkeeper/internal/toolchain"
)

// reach returns what each agent may use in addition to its workspace, and what tests
// and CI commands may use. Only an agent gets its own login and the keys of its own API.
func (a *App) reach(ctx context.Context, agents, env []string) (func(agent string) pipeline.Reach, error) {
	c := a.Config
	write, err := a.configured("agent.caches", c.Agent.Caches)
	if err != nil {
		return nil, err
	}
	read, err := a.configured("agent.read", c.Agent.Read)
	if err != nil {
		return nil, err
	}
	found := toolchain.Find(a.env, a.programs(agents)...)
	inside := func(path string) bool {
		return slices.ContainsFunc(write, func(dir string) bool { return isWithin(path, protect.Real(dir)) }) || meets(path, a.state) || meets(path, a.below(dirName))
	}
	checks := pipeline.Reach{
		Write: write, Read: append(read, slices.DeleteFunc(append(found.Read, a.environments()...), inside)...),
		Scratch: slices.DeleteFunc(found.Caches, inside), Keep: c.Run.CheckEnv, Home: gitIdentity(ctx, a.Root.Dir(), env),
	}
	byName := map[string]pipeline.Reach{"": checks}
	for _, name := range slices.DeleteFunc(slices.Clone(agents), func(name string) bool { return name == "" }) {
		r := checks
		r.Write = append(slices.Clone(write), a.homesOf(name)...)
		r.Read = append(slices.Clone(checks.Read), a.settingsOf(name)...)
		r.Keep = append(slices.Clone(c.Agent.Env), a.variablesOf(name)...)
		byName[name] = r
	}
	return func(agent string) pipeline.Reach { return byName[agent] }, nil
}

// configured are paths of the configuration. One with Lockkeeper's own state in it would
// make every agent an administrator.
func (a *App) configured(key string, places []string) (list []string, err error) {
	home, _ := a.env("HOME")
	for _, place := range places {
		path := place
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(path) {
			path = a.below(path)
		}
		for _, own := range []string{a.state, a.below(dirName)} {
			if meets(path, own) {
				return nil, &lockkeeper.InputError{Field: key, Value: place, Reason: "Lockkeeper's own state is in " + own, Next: "name the directories that are needed, without that one"}
			}
		}
		list = append(list, path)
	}
	return list, nil
}

// programs are the programs that agents are started by, with files among their arguments.
func (a *App) programs(agents []string) (list []string) {
	for _, name := range agents {
		if name == "" {
			continue // the usual one
		}
		if name != a.Config.Agent.Name || len(a.Config.Agent.Command) == 0 {
			list = append(list, name)
			continue
		}
		for i, word := range a.Config.Agent.Command {
			if i == 0 || filepath.IsAbs(word) {
				list = append(list, word)
			}
		}
	}
	return list
}

// environments are the virtual environments of Python in the codebase: programs in a
// copy of one name the original as their interpreter.
func (a *App) environments() (list []string) {
	for _, pattern := range []string{"*/pyvenv.cfg", ".*/pyvenv.cfg"} {
		found, err := filepath.Glob(filepath.Join(a.Root.Dir(), pattern))
		if err != nil {
			continue // the pattern is fixed, but the root may have brackets in its name
		}
		for _, file := range found {
			list = append(list, filepath.Dir(file))
		}
	}
	return list
}

// homesOf are the places that an agent keeps its own state in: its login, which it renews
// while it works, and its sessions.
func (a *App) homesOf(name string) []string {
	home, _ := a.env("HOME")
	switch name {
	case "codex":
		return a.moved("CODEX_HOME", "", filepath.Join(home, ".codex"))
	case "gemini":
		return a.moved("GEMINI_CLI_HOME", ".gemini", filepath.Join(home, ".gemini"))
	case "claude":
		return a.moved("CLAUDE_CONFIG_DIR", "", filepath.Join(home, ".claude"))
	}
	return nil
}

// settings are what an agent keeps beside its login that its program runs or obeys when a
// person starts it later, outside of any sandbox.
var settings = map[string][]string{
	"claude": {".claude.json", "settings.json", "settings.local.json", "CLAUDE.md", "agents", "commands", "hooks", "plugins", "skills"},
	"codex":  {"config.toml", "hooks.json", "AGENTS.md", "prompts", "rules", "skills"},
	"gemini": {"settings.json", "GEMINI.md", "commands", "extensions", "hooks"},
}

// settingsOf are the settings of an agent that exist, which it may only read.
func (a *App) settingsOf(name string) (list []string) {
	for _, home := range a.homesOf(name) {
		for _, file := range settings[name] {
			list = append(list, filepath.Join(home, file))
		}
	}
	if home, known := a.env("HOME"); known && name == "claude" {
		list = append(list, filepath.Join(home, ".claude.json")) // beside its directory, unless that was moved
	}
	return list
}

// variablesOf are the variables with the keys of an agent's own API.
func (a *App) variablesOf(name string) (list []string) {
	switch name {
	case "codex":
		return []string{"OPENAI_*", "CODEX_*"}
	case "gemini":
		return []string{"GEMINI_*", "GOOGLE_*"}
	case "claude":
		list = []string{"ANTHROPIC_*", "CLAUDE_*"}
		for chosen, more := range map[string]string{"CLAUDE_CODE_USE_BEDROCK": "AWS_*", "CLAUDE_CODE_USE_VERTEX": "GOOGLE_*", "CLAUDE_CODE_USE_FOUNDRY": "AZURE_*"} {
			if value, _ := a.env(chosen); value != "" && value != "0" && value != "false" {
				list = append(list, more)
			}
		}
	}
	return list
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
	a, b = protect.Real(a), protect.Real(b)
	return isWithin(a, b) || isWithin(b, a)
}

func isWithin(path, dir string) bool { return strings.HasPrefix(path+"/", dir+"/") }

// gitIdentity is the configuration of git that commands get: who commits, and nothing
// of what else a person's configuration may hold.
func gitIdentity(ctx context.Context, root string, env []string) map[string]string {
	text := ""
	for _, key := range []string{"name", "email"} {
		cmd := exec.CommandContext(ctx, "git", "config", "--get", "user."+key)
		cmd.Dir, cmd.Env = root, env
		if said, err := cmd.Output(); err == nil { // else nobody has set it
			text += fmt.Sprintf("\t%s = %q\n", key, strings.TrimSuffix(string(said), "\n"))
		}
	}
	if text == "" {
		return nil
	}
	return map[string]string{".gitconfig": "[user]\n" + text}
}
