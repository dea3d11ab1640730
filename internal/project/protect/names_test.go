package protect_test

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/project/protect"
)

// Files that decide whether hosts run hooks are protected under every name, whether they exist or
// not.
//
// shows: DL-72
func TestGuards(t *testing.T) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for _, dir := range []string{"repo/sub/deep", "home", "elsewhere/claude", "repo/real"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "repo", "repo/sub/up": "../real", "home/.claude": "../elsewhere/claude", "repo/yaml": "lockkeeper.yaml"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) {
		value, known := map[string]string{"HOME": at("home"), "CODEX_HOME": at("codex"), "XDG_STATE_HOME": at("state")}[name]
		return value, known
	}
	look := protect.New(protect.Options{Root: at("repo"), Env: env}).Checker()
	for name, want := range map[string]struct{ is, below bool }{
		"repo/.claude/settings.json":            {true, true},
		"repo/.claude/settings.local.json":      {true, true},
		"repo/.claude/commands/x.md":            {false, false},
		"repo/sub/.codex/config.toml":           {true, true},
		"repo/sub/.codex":                       {false, true},
		"repo/.mcp.json":                        {true, true},
		"repo/sub/deep/.MCP.json":               {true, true},
		"repo/sub/mcp.json":                     {false, false},
		"link/sub/.mcp.json":                    {true, true},
		"repo/sub/.claude/hooks/a/b.sh":         {true, true},
		"repo/.claude/hooks/.claude/commands/x": {true, true},
		"repo/.claude/hooks":                    {true, true},
		"repo/.claude/agents/x.md":              {false, false},
		"repo/.claude/skills/x/SKILL.md":        {false, false},
		"repo/sub/.codex/hooks/x.sh":            {true, true},
		"repo/sub/.codex/rules/x.rules":         {true, true},
		"repo/.codex/agents/x.toml":             {true, true},
		"repo/.codex/prompts/x.md":              {false, false},
		"repo/.gemini/.env":                     {true, true},
		"repo/.gemini/extensions/x/y.json":      {true, true},
		"repo/.gemini/policies/x.toml":          {true, true},
		"repo/.gemini/sandbox.bashrc":           {true, true},
		"repo/.gemini/commands/x.toml":          {false, false},
		"repo/.cursor/mcp.json":                 {true, true},
		"repo/.cursor/hooks.json":               {true, true},
		"repo/.cursor/rules/x.mdc":              {false, false},
		"repo/sub/.vscode/tasks.json":           {true, true},
		"repo/.vscode/settings.json":            {true, true},
		"repo/.vscode/mcp.json":                 {true, true},
		"repo/.vscode/launch.json":              {false, false},
		"repo/sub/.vscode":                      {false, true},
		"repo/opencode.json":                    {true, true},
		"repo/sub/opencode.jsonc":               {true, true},
		"repo/.opencode/plugin/x.ts":            {true, true},
		"repo/.opencode/tools/x.ts":             {true, true},
		"repo/.opencode/agent/x.md":             {false, false},
		"repo/sub/.idea/startup.xml":            {true, true},
		"repo/.zed/settings.json":               {true, true},
		"repo/.helix/languages.toml":            {true, true},
		"repo/.devcontainer/devcontainer.json":  {true, true},
		"repo/.devcontainer.json":               {true, true},
		"repo/sub/Team.code-workspace":          {true, true},
		"repo/team.code-workspaces":             {false, false},
		"repo/.exrc":                            {true, true},
		"repo/sub/.envrc":                       {true, true},
		"repo/mise.toml":                        {true, true},
		"repo/.aider.conf.yml":                  {true, true},
		"repo/.continue/mcpServers/x.yaml":      {true, true},
		"repo/.continue/rules/x.md":             {false, false},
		"repo/.windsurf/hooks.json":             {true, true},
		"repo/.windsurf/rules/x.md":             {false, false},
		"repo/.roo/mcp.json":                    {true, true},
		"repo/.kiro/hooks/x.hook":               {true, true},
		"repo/.github/hooks/x.json":             {true, true},
		"repo/.github/workflows/ci.yml":         {false, false},
		"repo/.husky/pre-commit":                {true, true},
		"repo/lefthook.yml":                     {true, true},
		"repo/.lefthook-local.toml":             {true, true},
		"repo/.lefthook/pre-commit/x.sh":        {true, true},
		"repo/.pre-commit-config.yaml":          {true, true},
		"home/.aider.conf.yml":                  {true, true},
		"home/.claude.json":                     {true, true},
		"home/.gemini/trusted_hooks.json":       {true, true},
		"codex/rules/default.rules":             {true, true},
		"repo/.claude":                          {false, true},
		"repo":                                  {false, true},
		"repo/sub":                              {false, false},
		"repo/lockkeeper.yaml":                  {true, true},
		"repo/sub/lockkeeper.yaml":              {false, false},
		"repo/yaml":                             {true, true},
		"repo/.lockkeeper/store":                {true, true},
		"repo/sub/.lockkeeper":                  {true, true},
		"repo/sub/.lockkeeper/space.json":       {true, true},
		"elsewhere/.lockkeeper":                 {false, false},
		"link/lockkeeper.yaml":                  {true, true},
		"link/.gemini/settings.json":            {true, true},
		"repo/sub/up/../.claude/../.lockkeeper": {true, true},
		"home/.claude/settings.json":            {true, true},
		"elsewhere/claude/settings.json":        {true, true},
		"elsewhere/claude":                      {false, true},
		"elsewhere/.claude/settings.json":       {false, false},
		"codex/config.toml":                     {true, true},
		"home/.gemini/trustedFolders.json":      {true, true},
		"home/.claude/plugins/x/hooks.json":     {true, true},
		"home/.local/state/lockkeeper/tokens/t": {true, true},
		"state/lockkeeper/sessions/s/held":      {true, true},
		"state/lockkeeper/workspaces/w/tree/f":  {false, false},
		"state":                                 {false, true},
		"home/notes":                            {false, false},
	} {
		file := base + "/" + name
		_, is := look.File(file)
		_, below := look.Tree(file)
		if is != want.is || below != want.below {
			t.Errorf("%s: %v %v, want %v", name, is, below, want)
		}
	}
}
