package protect

import "lockkeeper/internal/agent/program"

// starters lists the files and directories of a project by which agents, editors, shells and
// git hooks start programs, or stop asking before they do, without a person who invokes the
// file. An agent or an editor may be started in any directory, so they are protected at any
// depth.
//
// Files that only take effect when they are invoked, such as commands, skills and
// instructions, are not in the list: a lock and a review are enough for them.
func starters() []string {
	list := agentStarters()
	list = append(list, // editors
		".idea", ".vs", ".helix", ".devcontainer", ".devcontainer.json", ".dir-locals.el", ".exrc", ".nvim.lua", ".nvimrc", ".vimrc")
	list = append(list, // shells that enter the directory
		".envrc", "mise.toml", "mise.local.toml", ".mise.toml", ".mise.local.toml", ".mise/config.toml", "mise/config.toml", ".config/mise.toml", ".config/mise")
	list = append(list, // hook managers of git, whose hooks in .git read these files
		".husky", ".githooks", ".git-hooks", ".lefthook", ".lefthook-local", ".overcommit.yml", ".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml")
	for _, name := range []string{"lefthook", ".lefthook", ".config/lefthook", "lefthook-local", ".lefthook-local", ".config/lefthook-local"} {
		for _, format := range []string{".yml", ".yaml", ".toml", ".json", ".jsonc"} {
			list = append(list, name+format)
		}
	}
	return list
}

// agentStarters lists the starters that agents and editors read in the user's home as well.
func agentStarters() []string {
	list := HostFiles()
	for _, p := range program.All() {
		list = append(list, p.ProjectFiles...)
	}
	return append(list,
		".cursor/mcp.json", ".cursor/hooks.json", ".cursor/hooks", ".cursor/cli.json", ".cursor/environment.json", ".cursor/permissions.json", ".cursor/sandbox.json", ".cursor/worktrees.json",
		".vscode/tasks.json", ".vscode/settings.json", ".vscode/mcp.json",
		".zed/settings.json", ".zed/tasks.json",
		"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc", ".opencode/package.json",
		".opencode/plugin", ".opencode/plugins", ".opencode/tool", ".opencode/tools",
		".aider.conf.yml", ".aider.conf.yaml",
		".continue/config.json", ".continue/config.yaml", ".continue/config.ts", ".continue/mcpServers", ".continuerc.json",
		".windsurf/hooks.json", ".windsurf/hooks", ".windsurf/mcp_config.json", ".codeium/windsurf/hooks.json", ".codeium/windsurf/mcp_config.json",
		".github/hooks", ".copilot/mcp-config.json", ".copilot/hooks", ".copilot/config.json",
		".clinerules/hooks", ".roo/mcp.json", ".kilocode/mcp.json", ".kiro/settings", ".kiro/hooks", ".amazonq/mcp.json", ".amazonq/default.json",
		".qwen/settings.json", ".qwen/hooks", ".qwen/extensions", ".qwen/.env", ".trae/mcp.json", ".junie/mcp", ".augment/settings.json",
		".factory/settings.json", ".factory/settings.local.json", ".factory/mcp.json", ".factory/hooks", "crush.json", ".crush.json")
}

// starterEndings lists the endings of names under which editors find settings and tasks in any
// directory.
func starterEndings() []string { return []string{".code-workspace", ".sublime-project"} }
