package projecttest

import (
	"os"
	"path/filepath"
	"testing"

	"lockkeeper/internal/git/gittest"
)

// ProtectedConfig lets the gate write everything and moves the documents of flows.
const ProtectedConfig = "gate: {allowed_write_paths: [.]}\nlocks_file: .locks/locks.json\nrun: {sidecar_dir: flows}\n"

// Protected creates every kind of protected file in a codebase and returns their paths. Some
// exist, others would be new. The codebase is configured with ProtectedConfig.
func Protected(t testing.TB, root string) []string {
	t.Helper()
	Must(t, os.MkdirAll(filepath.Join(root, "store"), 0o755))
	gittest.Run(t, root, "init", "-q")
	gittest.Run(t, root, "config", "core.hooksPath", ".husky/_")
	gittest.Run(t, root, "config", "include.path", "../team.gitconfig")
	gittest.Run(t, root, "init", "-q", "vendor/lib")
	gittest.Run(t, filepath.Join(root, "vendor/lib"), "config", "core.hooksPath", "hooks")
	gittest.Run(t, root, "init", "-q", "--separate-git-dir", "store/sub", "modules/sub")
	gittest.Run(t, root, "init", "-q", "--bare", "mirror")
	for _, dir := range []string{"docs", "app", ".husky/_", ".pipeline/users", "records/analysis", "half/objects", "half/refs", "sub/.codex"} {
		Must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for name, text := range map[string]string{"team.gitconfig": "[user]\n\tname = x\n", ".husky/pre-commit": "true\n", ".husky/_/pre-commit": "true\n", ".pipeline/users/decisions.json": "{}\n"} {
		Must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	for name, to := range map[string]string{"docs/flow": "../.pipeline", "docs/hooks": "../.husky", ".analysis": "records/analysis", "docs/git": "../mirror"} {
		Must(t, os.Symlink(to, filepath.Join(root, name)))
	}
	return []string{
		".pipeline/users/decisions.json", ".pipeline/new/decisions.json", "flows/users/decisions.json", "records/analysis/x.json", ".analysis/x.json",
		"docs/flow/users/decisions.json", ".Pipeline/users/decisions.json", ".pipeline",
		"lockkeeper.yaml", "Lockkeeper.YAML", ".lockkeeper/x", "sub/.lockkeeper/space.json", ".locks/locks.json",
		".git/config", ".GIT/config", ".git", "vendor/lib/.git/config", "modules/sub/.git", "store/sub/config", "store/sub/hooks/pre-commit", "mirror/config", "docs/git/hooks/update", "half/HEAD",
		"app/.git", "team.gitconfig",
		".husky/pre-commit", ".husky/_/pre-push", "docs/hooks/pre-commit", "vendor/lib/hooks/pre-commit",
		".claude/settings.json", "sub/.codex/config.toml", "app/.gemini/settings.json", ".claude/Settings.json",
		".mcp.json", "app/.mcp.json", ".claude/hooks/check.sh", "sub/.codex/rules/default.rules", ".gemini/extensions/x/gemini-extension.json", ".gemini/.env",
		".cursor/mcp.json", ".vscode/tasks.json", "app/.vscode/settings.json", "opencode.jsonc", ".opencode/plugin/x.ts",
		".idea/startup.xml", "app/.zed/settings.json", ".devcontainer/devcontainer.json", "app.code-workspace", ".envrc", ".aider.conf.yml", ".windsurf/hooks.json", ".continue/mcpServers/x.yaml",
		"lefthook.yml", ".pre-commit-config.yaml", ".github/hooks/x.json",
	}
}

// Unprotected lists paths in the same codebase that resemble protected ones and may be
// written.
func Unprotected() []string {
	return []string{"app/user.rb", ".pipelines/x", "docs/.pipeline", ".huskyrc", ".gitignore", ".github/workflows/ci.yml", "vendor/lib/a.rb", "modules/sub/a.rb", "hooks/pre-commit",
		"half/config", "sub/lockkeeper.yaml", ".claude/commands/x.md", ".claude/skills/x/SKILL.md", "CLAUDE.md", "AGENTS.md", ".gemini/commands/x.toml", ".codex/skills/x/SKILL.md",
		".cursor/rules/x.mdc", ".vscode/launch.json", ".vscode/extensions.json", "docs/mcp.json", "app/settings.json", ".opencode/command/x.md"}
}

// StayProtected tries to change every protected path of a new codebase and then the
// unprotected ones. change returns whether the surface accepted the change. Whatever it
// returns, a protected file must keep its content.
func StayProtected(t *testing.T, p *Project, change func(t *testing.T, path string) (accepted bool)) {
	t.Helper()
	for _, path := range Protected(t, p.Root) {
		before := state(filepath.Join(p.Root, path))
		if change(t, path) {
			t.Errorf("%s: accepted", path)
		}
		if after := state(filepath.Join(p.Root, path)); after != before {
			t.Errorf("%s: was %q, is %q", path, before, after)
		}
	}
	for _, path := range Unprotected() {
		if !change(t, path) {
			t.Errorf("%s: refused, and nothing protects it", path)
		}
	}
}

// state describes the file at a path: its mode and its content.
func state(file string) string {
	info, err := os.Lstat(file)
	if err != nil {
		return "missing"
	}
	text, _ := os.ReadFile(file) // a directory has no content
	return info.Mode().String() + " " + string(text)
}
