package program

// table describes the programs. Names of files were read from Claude Code 2.1.197,
// openai/codex at 0656615 and Gemini CLI 0.61.0.
//
// Of the signs, these are documented: CLAUDECODE (Claude Code, environment variables),
// GEMINI_CLI (Gemini CLI, shell tool), CODEX_SANDBOX and CODEX_SANDBOX_NETWORK_DISABLED
// (Codex, notes for agents in its repository). The others were read from source or observed.
var table = []Program{
	{
		Name: "claude",
		Dir:  ".claude", DirVariable: "CLAUDE_CONFIG_DIR",
		Login: ".credentials.json", Token: []string{"claudeAiOauth", "refreshToken"},
		Settings:     []string{".claude.json", "settings.json", "settings.local.json", "CLAUDE.md", "agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills"},
		BesideDir:    []string{".claude.json"},
		HookFiles:    []string{".claude/settings.json", ".claude/settings.local.json"},
		ProjectFiles: []string{".mcp.json", ".claude/hooks"}, // other agents read .mcp.json too
		HomeFiles:    []string{".claude/plugins"},
		SystemDir:    "/etc/claude-code",
		Signs:        []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"},
		APIVariables: []string{"ANTHROPIC_*", "CLAUDE_*"},
		Providers:    map[string][]string{"CLAUDE_CODE_USE_BEDROCK": {"AWS_*"}, "CLAUDE_CODE_USE_VERTEX": {"GOOGLE_*"}, "CLAUDE_CODE_USE_FOUNDRY": {"AZURE_*"}},
		LimitsCost:   true,
	},
	{
		Name: "codex",
		Dir:  ".codex", DirVariable: "CODEX_HOME",
		Login: "auth.json", Token: []string{"tokens", "refresh_token"},
		Settings:     []string{"config.toml", "*.config.toml", "hooks.json", "AGENTS.md", "AGENTS.override.md", ".env", "agents", "hooks", "plugins", "prompts", "rules", "skills"},
		HookFiles:    []string{".codex/hooks.json", ".codex/config.toml"},
		ProjectFiles: []string{".codex/hooks", ".codex/rules", ".codex/agents", ".codex/environments", ".codex/.env"},
		SystemDir:    "/etc/codex",
		Signs:        []string{"CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI"},
		APIVariables: []string{"OPENAI_*", "CODEX_*"},
	},
	{
		Name: "gemini",
		Dir:  ".gemini", DirVariable: "GEMINI_CLI_HOME", VariableIsHome: true,
		Login: "oauth_creds.json", Token: []string{"refresh_token"},
		Settings: []string{"settings.json", "GEMINI.md", ".env", "trustedFolders.json", "trusted_hooks.json", "google_accounts.json", "installation_id", "gemini-credentials.json",
			"agents", "commands", "extensions", "hooks", "policies", "skills"},
		HookFiles:    []string{".gemini/settings.json"},
		ProjectFiles: []string{".gemini/hooks", ".gemini/extensions", ".gemini/policies", ".gemini/.env", ".gemini/sandbox.bashrc", ".gemini/sandbox.Dockerfile"},
		HomeFiles:    []string{".gemini/trustedFolders.json", ".gemini/trusted_hooks.json"},
		SystemDir:    "/etc/gemini-cli",
		Signs:        []string{"GEMINI_CLI"},
		APIVariables: []string{"GEMINI_*", "GOOGLE_*"},
	},
}
