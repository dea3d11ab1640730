package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/session"
)

func (s *stage) link(to, name string) {
	s.t.Helper()
	if err := os.Symlink(to, name); err != nil {
		s.t.Fatal(err)
	}
}

// An agent can neither switch the checks off nor reach the files that they depend on.
//
// shows: DL-72 DL-88 DL-89 CF-14
func TestReserved(t *testing.T) {
	s := newStage(t)
	s.write(".claude/commands/x.md", "x")
	outside := t.TempDir()
	s.link(s.dir, filepath.Join(outside, "repo"))
	s.link(".claude", s.at("cc"))
	edit := func(file string) said {
		return s.claude("A", "PreToolUse", "Edit", map[string]any{"file_path": file})
	}
	for _, file := range []string{s.at(".claude/settings.json"), s.at(".claude/settings.local.json"), s.at(".codex/config.toml"), s.at(".codex/hooks.json"),
		s.at(".gemini/settings.json"), s.at("app/.claude/settings.json"), s.at("cc/settings.json"), filepath.Join(outside, "repo/lockkeeper.yaml"),
		filepath.Join(outside, "repo/.lockkeeper/x"), filepath.Join(s.home, ".claude/settings.json"), filepath.Join(s.home, ".codex/config.toml")} {
		s.refuses(edit(file), "only a person")
	}
	for _, command := range []string{"lockkeeper off 30m", "env -i lockkeeper lock clear", "echo x > lockkeeper.yaml", "rm -rf .lockkeeper",
		"echo '{}' > .claude/settings.local.json", "echo x > ~/.claude/settings.json", "cp x $HOME/.codex/config.toml", "mv .claude x", "rm -r .claude",
		"mv cc x; rm -r .claude", "ln -s /tmp/x .gemini", "mv -T app .claude", "git checkout -- .claude", "rm -rf ../repo", "rm -rf ~/.claude",
		"ln .claude/settings.json hard", "python3 -c \"p='.claude/settings.json'; open(p,'w').write('')\""} {
		s.refuses(s.bash("A", "PreToolUse", command), "only a person")
	}
	s.refuses(s.call("claude-code", map[string]any{"session_id": "A", "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "t", "cwd": outside,
		"tool_input": map[string]any{"file_path": filepath.Join(s.home, ".claude/settings.json")}}), "only a person")
	s.refuses(s.edit("A", ".git/config"))
	s.reads("A", ".claude/commands/x.md")
	for _, command := range []string{"cat .claude/settings.json", "git restore .", "chmod -R u+w app", "cp app/models/user.rb .claude/commands/", "rm -rf .claude/commands"} {
		s.passes(s.bash("A", "PreToolUse", command))
		s.passes(s.bash("A", "PostToolUse", command))
	}
	s.passes(edit(s.at(".claude/commands/x.md")))
	// While a person has the checks switched off, an agent may change these files.
	if _, err := session.Open(s.open()).SwitchOff(t.Context(), personActor, "a test", minute); err != nil {
		t.Fatal(err)
	}
	s.passes(edit(s.at(".claude/settings.json")))
	s.passes(edit(filepath.Join(s.home, ".claude/settings.json")))
}

// An agent cannot set which programs git and its hooks start. Other settings, and settings of a
// repository outside every codebase, are free.
func TestReservedSettings(t *testing.T) {
	s := newStage(t)
	s.write(".gitmodules", "")
	s.bash("A", "PreToolUse", "git init -q ../elsewhere")
	for _, command := range []string{"git config core.hooksPath evil", "git config set core.hooksPath evil", "git config --local core.hookspath /tmp/x", "git config --global --add core.hooksPath x",
		"git config --unset core.hooksPath", "git config unset core.hooksPath", "git -C app config Core.HooksPath x", "cd app && git config core.fsmonitor ./x", "git config --type path core.sshCommand 'x -y'",
		"git config filter.x.smudge 'sh x'", "git config diff.external x", "git config pager.log 'sh x'", "git config include.path ../x", "git config includeIf.onbranch:a.path x",
		"git config credential.https://a.b.helper '!sh x'", "git config hook.x.command x", "git config --rename-section zzz core", "git config rename-section zzz core", "git config remove-section core",
		"git config --edit", "git config -e", "git config edit", "git config submodule.a.update '!x'", "git config core.hooksPath true", "git config -f .git/config core.hooksPath x", "git config --file=.git/config user.name x",
		"sh -c 'git config core.hooksPath x'"} {
		s.refuses(s.bash("A", "PreToolUse", command), "Do not try another way")
	}
	for _, command := range []string{"git config core.hooksPath", "git config --get core.hooksPath", "git config get core.hooksPath", "git config --get-all --default x core.hooksPath", "git config --list", "git config -l --show-origin",
		"git config user.name x", "git config set user.email a@example.org", "git config core.pager cat", "git config pager.log false", "git config core.fsmonitor true", "git config core.autocrlf input", "git config --unset user.name",
		"git config alias.st 'status -sb'", "git config submodule.a.update none", "git config diff.algorithm histogram", "git config merge.conflictStyle zdiff3", "git config -f .gitmodules submodule.a.branch main",
		"cd /tmp && git config core.hooksPath x", "git -C / config core.hooksPath x"} {
		s.passes(s.bash("A", "PreToolUse", command))
		s.passes(s.bash("A", "PostToolUse", command))
	}
}

// The effects of a command are compared in every directory that it goes to or names.
//
// shows: GP-5
func TestComparedElsewhere(t *testing.T) {
	s, other := newStage(t), newStage(t)
	outside := t.TempDir()
	s.link(s.dir, filepath.Join(outside, "repo"))
	s.edits("A", user, "by A\n")
	for i, test := range []struct{ cwd, command, workdir string }{
		{outside, "cd repo && ./fix", ""},
		{outside, "pushd repo; ./fix", ""},
		{outside, "f=$(echo " + s.at(user) + "); echo hi > $f", ""},
		{outside, "make -C " + s.dir, ""},
		{outside, "env --chdir=" + s.dir + " ./fix", ""},
		{outside, "./fix", s.dir},
		{other.dir, "cd " + s.dir + " && ./fix", ""},
	} {
		call := func(event string) said {
			return s.call("codex", map[string]any{"session_id": "B", "hook_event_name": event, "tool_name": "Bash", "tool_use_id": "t", "cwd": test.cwd,
				"tool_input": map[string]any{"command": test.command, "workdir": test.workdir}})
		}
		s.passes(call("PreToolUse"))
		s.write(user, strings.Repeat("by B\n", i+1))
		s.says(s.passes(call("PostToolUse")), "UNCOVERED "+user)
	}
}

// A link or a hard link to a held file counts as that file.
func TestOtherNames(t *testing.T) {
	s := newStage(t)
	outside := t.TempDir()
	s.passes(s.edit("A", user))
	s.passes(s.edit("A", "app/new.rb"))
	s.link(s.at("app/new.rb"), filepath.Join(outside, "dangling")) // A has not written it yet
	s.link(s.at("app/models"), s.at("models"))
	s.link(s.at("app/views/users"), s.at("app/models/views"))
	for _, file := range []string{filepath.Join(outside, "dangling"), s.at("models/user.rb"), s.dir + "/app/models/views/../user.rb"} {
		s.refuses(s.claude("B", "PreToolUse", "Edit", map[string]any{"file_path": file}))
	}
	for _, command := range []string{"echo x > " + filepath.Join(outside, "dangling"), "ln " + user + " hard", "echo x > app/views/../models/user.rb",
		"echo x >& " + user, "tee app/models/{user,x}.rb", "git checkout release-1.2", "git restore '*.rb'"} {
		s.refuses(s.bash("B", "PreToolUse", command))
	}
}

// A command that removes a file that configures the checks is reported.
//
// shows: DL-72
func TestGuardsGoneWithACommand(t *testing.T) {
	s := newStage(t)
	s.write(".claude/settings.json", "{}\n")
	s.passes(s.bash("A", "PreToolUse", "git clean -fd"))
	if err := os.Remove(s.at(".claude/settings.json")); err != nil {
		t.Fatal(err)
	}
	s.says(s.passes(s.bash("A", "PostToolUse", "git clean -fd")), "GONE .claude/settings.json", "systemMessage")
}
