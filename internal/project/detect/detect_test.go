package detect

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/project/config"
)

// plant writes a codebase and programs, and looks at it with only these programs in PATH.
func plant(t *testing.T, files map[string]string, programs ...string) *Found {
	t.Helper()
	root, bin := t.TempDir(), t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Look(t.Context(), root, func(name string) (string, bool) { return bin, name == "PATH" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, config.FileName)
	if err := os.WriteFile(path, []byte(f.File()), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, nil, nil)
	if err != nil {
		t.Fatalf("the proposal is invalid: %v\n%s", err, f.File())
	}
	if !slices.Equal(c.Gate.AllowedWritePaths, f.Writes) || c.Run.TestCommand != f.Test && c.Run.SuiteCommand != f.Test || len(c.Run.CI) != len(f.Checks) {
		t.Errorf("the file says %q, %q, %q, not %+v", c.Gate.AllowedWritePaths, c.Run.TestCommand, c.Run.CI, f)
	}
	return f
}

// Each kind of codebase is recognized by its manifest, and gets the command that tests all of it.
func TestStacks(t *testing.T) {
	for name, test := range map[string]struct {
		files    map[string]string
		programs []string
		stacks   string
		managers string
		writes   string
		command  string
		checks   string
	}{
		"go": {map[string]string{"go.mod": "module m\n", "cmd/m/main.go": "package main\n", "internal/x/x_test.go": "package x\n", "testdata/x/package.json": "{}"},
			[]string{"go", "staticcheck"}, "Go", "go modules", "cmd go.mod internal test testdata tests", "go test ./...", "go vet ./..."},
		"go in the root":    {map[string]string{"go.mod": "module m\n", "m.go": "package m\n"}, []string{"go"}, "Go", "go modules", ".", "go test ./...", "go vet ./..."},
		"go workspace":      {map[string]string{"go.work": "go 1.24\n\nuse (\n\t./a\n\t./b\n)\n", "a/go.mod": "module a\n", "a/a.go": "", "b/go.mod": "module b\n"}, []string{"go"}, "Go", "", "a b go.work test tests", "go test ./a/... ./b/...", ""},
		"go without go":     {map[string]string{"go.mod": "module m\n", "m.go": ""}, nil, "Go", "go modules", ".", "", ""},
		"a Makefile":        {map[string]string{"go.mod": "module m\n", "m.go": "", "Makefile": "build:\n\ttrue\ntest: build\n\ttrue\n"}, []string{"go", "make"}, "Go", "go modules", ".", "make test", "go vet ./..."},
		"a variable test":   {map[string]string{"go.mod": "module m\n", "m.go": "", "Makefile": "test := 1\nall:\n\ttrue\n"}, []string{"go", "make"}, "Go", "go modules", ".", "go test ./...", "go vet ./..."},
		"pytest":            {map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n", "app/a.py": "", "tests/test_a.py": "def test_a(): pass\n"}, []string{"python3", "ruff", "mypy"}, "Python", "pip", "app pyproject.toml tests", "python3 -m pytest -q", "ruff check ."},
		"a venv and src":    {map[string]string{"pyproject.toml": "pytest", "src/app/a.py": "", "tests/test_a.py": "", ".venv/bin/python": "#!/bin/sh\n", ".gitignore": ".venv\n"}, nil, "Python", "pip", "pyproject.toml src tests", "PYTHONPATH=src .venv/bin/python -m pytest -q", ""},
		"poetry":            {map[string]string{"pyproject.toml": "pytest", "poetry.lock": "", "app/a.py": ""}, []string{"python3", "poetry"}, "Python", "poetry", "app poetry.lock pyproject.toml test tests", "poetry run python -m pytest -q", ""},
		"uv":                {map[string]string{"pyproject.toml": "pytest", "uv.lock": "", "src/app/a.py": ""}, []string{"uv"}, "Python", "uv", "pyproject.toml src test tests uv.lock", "PYTHONPATH=src uv run python -m pytest -q", ""},
		"unittest":          {map[string]string{"setup.py": "", "pkg/a.py": "", "tests/test_a.py": "import unittest\n", "tests/__init__.py": ""}, []string{"python3"}, "Python", "pip", ".", "python3 -m unittest discover -s tests -t .", ""},
		"tox":               {map[string]string{"tox.ini": "", "pkg/a.py": ""}, []string{"python3", "tox"}, "Python", "tox", "pkg test tests tox.ini", "tox -q", ""},
		"npm":               {map[string]string{"package.json": `{"scripts": {"test": "node --test"}}`, "src/a.js": "", "test/a.test.js": ""}, []string{"npm", "node"}, "JavaScript", "npm", "package.json src test", "npm test", ""},
		"yarn":              {map[string]string{"package.json": `{"scripts": {"test": "jest"}}`, "yarn.lock": "", "src/a.js": ""}, []string{"yarn"}, "JavaScript", "yarn", "package.json src test tests yarn.lock", "yarn test", ""},
		"pnpm workspaces":   {map[string]string{"package.json": `{}`, "pnpm-workspace.yaml": "", "packages/a/package.json": "{}", "packages/a/a.js": ""}, []string{"pnpm"}, "JavaScript", "pnpm", "package.json packages pnpm-workspace.yaml test tests", "pnpm -r test", ""},
		"bun":               {map[string]string{"package.json": `{}`, "bun.lock": "", "src/a.test.ts": ""}, []string{"bun"}, "JavaScript", "bun", ".", "bun test", ""},
		"no tests yet":      {map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`, "src/a.js": ""}, []string{"npm"}, "JavaScript", "npm", "package.json src test tests", "", ""},
		"jest":              {map[string]string{"package.json": `{"devDependencies": {"jest": "1"}}`, "src/a.js": ""}, []string{"npm", "npx"}, "JavaScript", "npm", "package.json src test tests", "npx jest", ""},
		"vitest with types": {map[string]string{"package.json": `{"devDependencies": {"vitest": "1"}}`, "tsconfig.json": "{}", "src/a.ts": "", "node_modules/.bin/tsc": "#!/bin/sh\n", "node_modules/.bin/eslint": "#!/bin/sh\n"}, []string{"npm", "npx"}, "TypeScript JavaScript", "npm", "package.json src test tests tsconfig.json", "npx vitest run", "npx tsc --noEmit"},
		"rust":              {map[string]string{"Cargo.toml": "[package]\n", "src/lib.rs": "", "tests/it.rs": ""}, []string{"cargo"}, "Rust", "cargo", "Cargo.toml src tests", "cargo test", ""},
		"maven":             {map[string]string{"pom.xml": "", "src/main/java/A.java": "", "src/test/java/ATest.java": ""}, []string{"mvn"}, "Java", "maven", "pom.xml src", "mvn -q -B test", ""},
		"maven wrapper":     {map[string]string{"pom.xml": "", "mvnw": "#!/bin/sh\n", "src/main/java/A.java": "", "src/test/java/ATest.java": ""}, nil, "Java", "maven", "mvnw pom.xml src", "./mvnw -q -B test", ""},
		"gradle":            {map[string]string{"build.gradle.kts": "", "gradlew": "#!/bin/sh\n", "app/src/test/A.kt": ""}, nil, "Java", "gradle", "app build.gradle.kts gradlew", "./gradlew -q test", ""},
		"rails": {map[string]string{"config/application.rb": "", "Gemfile": "", "Gemfile.lock": " rubocop (1)", "bin/rails": "#!/bin/sh\n", "bin/rubocop": "#!/bin/sh\n", ".rubocop.yml": "", "app/models/a.rb": "", "test/models/a_test.rb": "", "bin/brakeman": "#!/bin/sh\n"}, nil,
			"Rails Ruby", "bundler", "app test", "bin/rails test", "bin/rubocop,bin/brakeman -q --no-pager"},
		"rspec":      {map[string]string{"Gemfile": "", "lib/a.rb": "", "spec/a_spec.rb": ""}, []string{"bundle"}, "Ruby", "bundler", "Gemfile lib spec", "bundle exec rspec", ""},
		"composer":   {map[string]string{"composer.json": `{"scripts": {"test": "phpunit"}}`, "src/A.php": "", "tests/ATest.php": ""}, []string{"php", "composer"}, "PHP", "composer", "composer.json src tests", "composer test", ""},
		"phpunit":    {map[string]string{"composer.json": `{}`, "src/A.php": "", "vendor/bin/phpunit": "#!/bin/sh\n"}, nil, "PHP", "composer", "composer.json src test tests", "vendor/bin/phpunit", ""},
		"cmake":      {map[string]string{"CMakeLists.txt": "", "src/a.cpp": ""}, []string{"cmake"}, "C/C++", "cmake", "CMakeLists.txt src test tests", `cmake -S . -B "$TMPDIR/build" && cmake --build "$TMPDIR/build" && ctest --test-dir "$TMPDIR/build" --output-on-failure`, ""},
		"meson":      {map[string]string{"meson.build": "", "src/a.c": ""}, []string{"meson"}, "C/C++", "meson", "meson.build src test tests", `meson setup "$TMPDIR/build" && meson test -C "$TMPDIR/build"`, ""},
		"make":       {map[string]string{"Makefile": "all:\n\ttrue\ncheck: all\n\ttrue\n", "src/a.c": ""}, []string{"make"}, "C/C++", "make", "Makefile src test tests", "make check", ""},
		"several":    {map[string]string{"services/api/go.mod": "module a\n", "services/api/a.go": "", "web/package.json": `{"scripts": {"test": "x"}}`, "web/a.js": "", "tools/my lib/Cargo.toml": "", "tools/my lib/a.rs": ""}, []string{"go", "npm", "cargo"}, "Go Rust JavaScript", "go modules cargo npm", "services test tests tools web", "(cd services/api && go test ./...) && (cd 'tools/my lib' && cargo test) && (cd web && npm test)", "(cd services/api && go vet ./...)"},
		"mkdocs":     {map[string]string{"mkdocs.yml": "", "docs/index.md": ""}, []string{"mkdocs"}, "MkDocs", "", "docs mkdocs.yml test tests", `mkdocs build -q --strict --site-dir "$TMPDIR/site"`, ""},
		"hugo":       {map[string]string{"hugo.toml": "", "content/a.md": ""}, []string{"hugo"}, "Hugo", "", "content hugo.toml test tests", `hugo --quiet --destination "$TMPDIR/site"`, ""},
		"markdown":   {map[string]string{"docs/a.md": "", "README.md": ""}, nil, "Markdown", "", ".", "", ""},
		"a script":   {map[string]string{"docs/a.md": "", "test.sh": "true\n"}, nil, "Markdown", "", ".", "sh test.sh", ""},
		"scripts":    {map[string]string{"lib/a.py": "", "script/test": "#!/bin/sh\n"}, []string{"python3"}, "Python", "", "lib script test tests", "./script/test", ""},
		"odd names":  {map[string]string{"go.mod": "module m\n", "a: b/x.go": "", "c/y.go": ""}, []string{"go"}, "Go", "go modules", ".", "go test ./...", "go vet ./..."},
		"yaml words": {map[string]string{"go.mod": "module m\n", "on/x.go": "", "1.0/x.go": ""}, []string{"go"}, "Go", "go modules", "1.0 go.mod on test tests", "go test ./...", "go vet ./..."},
		"nothing":    {map[string]string{}, nil, "", "", ".", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := plant(t, test.files, test.programs...)
			for what, pair := range map[string][2]string{
				"stacks": {strings.Join(f.Stacks, " "), test.stacks}, "managers": {strings.Join(f.Managers, " "), test.managers}, "writes": {strings.Join(f.Writes, " "), test.writes},
				"test": {f.Test, test.command}, "checks": {strings.Join(f.Checks, ","), test.checks},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
		})
	}
}

// Missing programs are notes, checks without settings are offered, and what surrounds a codebase
// is named.
func TestSurroundings(t *testing.T) {
	f := plant(t, map[string]string{"go.mod": "", "a.go": "", ".husky/pre-commit": "", ".pre-commit-config.yaml": "", "vendor/x/x.go": ""}, "govulncheck", "codex", "opencode")
	if got := fmt.Sprint(f.Hooks, f.Agents, f.Agent, f.Offered, f.Checks); got != "[husky pre-commit] [codex opencode] [codex] [govulncheck ./...] []" {
		t.Error(got)
	}
	if len(f.Notes) != 1 || f.Notes[0] != "the tests of Go are not run, because go is not installed: go test ./..." {
		t.Errorf("%q", f.Notes)
	}
	if !slices.Contains(f.Generated, "vendor") || !slices.Contains(f.Caches, "go/pkg/mod") {
		t.Errorf("%q %q", f.Generated, f.Caches)
	}
	for given, want := range map[string]string{"claude": "[claude]", "my-agent": "[command my-agent]", "sh bin/agent": "[command sh -c sh bin/agent]", "qwen": "[command qwen --yolo]", "command": "[command command]"} {
		if got := fmt.Sprint(Agent(given)); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// A tree of 100,000 files takes no time that a person notices.
func TestLargeTree(t *testing.T) {
	root := t.TempDir()
	var index strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&index, "100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tpkg/p%d/f%d.go\n", i/500, i%500)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"update-index", "--index-info"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Stdin = root, strings.NewReader(index.String())
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	began := time.Now()
	f, err := Look(t.Context(), root, os.LookupEnv, os.Environ())
	if err != nil || f.Test != "go test ./..." || fmt.Sprint(f.Writes) != "[go.mod pkg test tests]" {
		t.Errorf("%+v, %v", f, err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s", took)
	} else {
		t.Log(took)
	}
}
