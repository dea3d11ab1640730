package program

import (
	"path/filepath"
	"slices"
)

// A Program describes one agent program.
type Program struct {
	Name string // name in agent.name of the configuration, and of the executable

	// These fields describe the program's own directory, with its login, settings and sessions.
	Dir            string   // name in the user's home
	DirVariable    string   // the environment variable that names another directory
	VariableIsHome bool     // the variable names the directory that contains Dir, not Dir itself
	Login          string   // the file with the login
	Token          []string // the members that lead to the refresh token in the login
	Settings       []string // the files and directories with settings, as patterns
	BesideDir      []string // settings that are next to Dir if the variable is unset, and in it otherwise

	// These files make the program start other programs, or stop asking before it does.
	HookFiles    []string // the files in a project with its hooks
	ProjectFiles []string // further files and directories in a project
	HomeFiles    []string // further files and directories in the user's home
	SystemDir    string   // the settings of an administrator

	Signs        []string            // environment variables that the program sets for the commands it runs
	APIVariables []string            // environment variables with the keys of the program's API; a name can end in *
	Providers    map[string][]string // further variables, by the variable that selects another provider of the API

	Idle []string // tools that change no file: they read, ask, plan, or start agents whose tools are checked

	LimitsCost   bool // the program reports the cost of a call and accepts a limit for it
	CountsTokens bool // the program reports the tokens of a call
	ByHand       bool // only people start the program; no adapter calls it
}

// All lists the programs. The first is the default.
func All() []Program { return table }

// Idle lists the tools of a program that change no file.
func Idle(name string) []string {
	for _, p := range table {
		if p.Name == name {
			return p.Idle
		}
	}
	return nil
}

// Any is the name of an agent that is any other command.
const Any = "command"

// Names lists the names of all agents that can be called: the programs, and Any.
func Names() (list []string) {
	for _, p := range table {
		if !p.ByHand {
			list = append(list, p.Name)
		}
	}
	return append(list, Any)
}

func ByName(name string) (p Program, known bool) {
	i := slices.IndexFunc(table, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, false
	}
	return table[i], true
}

// MovedDir returns the program's own directory if a variable in an environment sets it.
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

// table describes the programs. Names of files were read from Claude Code 2.1.197,
// openai/codex at 0656615, Gemini CLI 0.61.0 and opencode 1.18.33.
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
		Idle: []string{"Agent", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Glob", "Grep", "LS", "LSP", "ListAgents", "ListMcpResourcesTool", "ReadMcpResourceTool", "SendMessage", "Skill",
			"StructuredOutput", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Workflow"},
		LimitsCost: true, CountsTokens: true,
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
		CountsTokens: true,
		Idle: []string{"close_agent", "exec", "list_mcp_resource_templates", "list_mcp_resources", "read_mcp_resource", "request_user_input", "resume_agent", "send_input", "spawn_agent", "tool_search",
			"update_plan", "view_image", "wait", "wait_agent", "web_search"},
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
		CountsTokens: true,
		Idle: []string{"activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode", "glob", "google_web_search", "grep_search", "list_directory", "read_many_files", "search_file_content",
			"web_fetch", "write_todos"},
	},
	{
		Name:         "opencode",
		Dir:          ".config/opencode",
		Settings:     []string{"opencode.json", "opencode.jsonc", "AGENTS.md", "agent", "agents", "command", "commands", "plugin", "plugins", "skill", "skills", "tool", "tools"},
		HookFiles:    []string{".opencode/plugins/lockkeeper.js"},
		ProjectFiles: []string{".opencode/plugins", ".opencode/plugin", "opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc", ".opencode/package.json", ".opencode/tool", ".opencode/tools"},
		HomeFiles: []string{".config/opencode/plugins", ".config/opencode/plugin", ".config/opencode/opencode.json", ".config/opencode/opencode.jsonc", ".config/opencode/package.json",
			".config/opencode/tool", ".config/opencode/tools"},
		SystemDir:    "/etc/opencode",
		Signs:        []string{"OPENCODE", "OPENCODE_PID"},
		APIVariables: []string{"OPENCODE_API_KEY"},
		Idle:         []string{"codesearch", "glob", "grep", "invalid", "list", "lsp", "plan_enter", "plan_exit", "question", "skill", "task", "todoread", "todowrite", "webfetch", "websearch"},
		ByHand:       true,
	},
}
