package detect

import (
	"slices"
	"strings"

	"lockkeeper/internal/agent/program"
)

// hookManagers are programs that manage the hooks of git, and their files.
var hookManagers = []manager{
	{"husky", []string{".husky", ".huskyrc", ".huskyrc.json"}},
	{"lefthook", []string{"lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml"}},
	{"pre-commit", []string{".pre-commit-config.yaml", ".pre-commit-config.yml"}},
	{"overcommit", []string{".overcommit.yml"}},
	{"simple-git-hooks", []string{".simple-git-hooks.json", "simple-git-hooks.json"}},
}

// others are agent programs without an adapter. Each command reads its prompt from standard input
// and works without questions.
var others = []struct {
	program string
	command []string
}{
	{"opencode", []string{"opencode", "run", "--auto"}},
	{"qwen", []string{"qwen", "--yolo"}},
	{"amp", []string{"amp", "--execute", "--dangerously-allow-all"}},
	{"cursor-agent", []string{"sh", "-c", `cursor-agent --print --force --trust "$(cat)"`}},
	{"aider", []string{"sh", "-c", `aider --yes-always --no-auto-commits --no-check-update --message "$(cat)"`}},
}

// Agent returns the agent with a name, or any command: the name for agent.name, and the command if
// it has no adapter.
func Agent(text string) []string {
	if _, known := program.ByName(text); known && slices.Contains(program.Names(), text) {
		return []string{text}
	}
	for _, o := range others {
		if o.program == text {
			return append([]string{program.Any}, o.command...)
		}
	}
	if !strings.ContainsAny(text, " \t\"'$|&;<>*") {
		return []string{program.Any, text}
	}
	return []string{program.Any, "sh", "-c", text}
}

// surroundings finds hook managers and agents.
func (f *Found) surroundings(t *tree) {
	for _, m := range hookManagers {
		if slices.ContainsFunc(m.files, t.exists) {
			add(&f.Hooks, m.name)
		}
	}
	for _, name := range program.Names() {
		if name != program.Any && t.installed(name) {
			add(&f.Agents, name)
		}
	}
	if len(f.Agents) > 0 {
		f.Agent = f.Agents[:1]
	}
	for _, o := range others {
		if !t.installed(o.program) {
			continue
		}
		add(&f.Agents, o.program)
		if f.Agent == nil {
			f.Agent = Agent(o.program)
		}
	}
}
