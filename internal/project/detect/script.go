package detect

import (
	"encoding/json"
	"strings"
)

// A packageFile is the part of a package.json that says how it is tested.
type packageFile struct {
	Manager    string            `json:"packageManager"`
	Workspaces any               `json:"workspaces"`
	Scripts    map[string]string `json:"scripts"`
	Needs      map[string]string `json:"dependencies"`
	DevNeeds   map[string]string `json:"devDependencies"`
}

var scriptManagers = []manager{{"pnpm", []string{"pnpm-lock.yaml", "pnpm-workspace.yaml"}}, {"yarn", []string{"yarn.lock"}}, {"bun", []string{"bun.lock", "bun.lockb"}}, {"npm", []string{"package.json"}}}

// noTests is part of the script test that npm init writes.
const noTests = "no test specified"

// scriptTests returns the tests of a JavaScript or TypeScript package.
func scriptTests(m module) []command {
	var file packageFile
	if json.Unmarshal([]byte(m.text("package.json")), &file) != nil {
		return nil
	}
	manager := m.scriptManager(file)
	needs := func(name string) bool { return file.Needs[name] != "" || file.DevNeeds[name] != "" }
	run := file.Scripts["test"]
	spread := file.Workspaces != nil || m.holds("pnpm-workspace.yaml")
	switch {
	case run != "" && !strings.Contains(run, noTests) && manager == "bun":
		return []command{{manager, "bun run test"}}
	case run != "" && !strings.Contains(run, noTests):
		return []command{{manager, manager + " test"}}
	case spread && manager == "pnpm":
		return []command{{manager, "pnpm -r test"}}
	case spread && manager == "yarn":
		return []command{{manager, "yarn workspaces foreach -A run test"}}
	case spread && manager == "npm":
		return []command{{manager, "npm test --workspaces --if-present"}}
	case needs("vitest"):
		return []command{{"npx", "npx vitest run"}}
	case needs("jest"):
		return []command{{"npx", "npx jest"}}
	case needs("mocha"):
		return []command{{"npx", "npx mocha"}}
	case needs("@docusaurus/core") && file.Scripts["build"] != "":
		return []command{{manager, manager + ` run build -- --out-dir "$TMPDIR/site"`}}
	case manager == "bun" && m.hasFile("*.test.ts", "*.test.js"):
		return []command{{manager, "bun test"}}
	case m.hasFile("*.test.js", "*.test.mjs", "*.test.cjs", "test.js"):
		return []command{{"node", "node --test"}}
	}
	return nil
}

// scriptManager returns the package manager: the declared one, or the one whose lock file exists.
func (m module) scriptManager(file packageFile) string {
	if name, _, _ := strings.Cut(file.Manager, "@"); name != "" {
		return name
	}
	for _, manager := range scriptManagers {
		if m.holds(manager.files...) || m.has(manager.files[0]) {
			return manager.name
		}
	}
	return "npm"
}
