package detect

// A stack is a language or a framework.
type stack struct {
	name      string
	manifests []string                 // base names and patterns of files that mark a project
	is        func(m module) bool      // reports whether the module is really of this stack; nil: the manifest decides
	managers  []manager                // package managers of the stack; the first whose file exists is used
	test      func(m module) []command // the commands that run all tests; the first that can run is used
	build     string                   // how a project is built, for people
	sources   []string                 // extensions of the stack's source files
	generated []string                 // directories that the tools of the stack fill
	caches    []string                 // directories in the home directory that the tools of the stack use
	checks    []check
}

// A manager is a package manager.
type manager struct {
	name  string
	files []string // the manifests and locks that show the use of the manager
}

// A command is a shell command and the program that it needs.
type command struct{ program, text string }

// A check is a CI check that init can add.
type check struct {
	command
	configured []string            // files with the settings of the check; the check is active if one exists, else only offered
	in         func(m module) bool // further signs that the codebase uses it
}

// stacks lists the stacks that this package knows. Frameworks come before their languages.
var stacks = []stack{
	{
		name: "Rails", manifests: []string{"application.rb"}, is: func(m module) bool { return m.dir == "config" || len(m.dir) > 7 && m.dir[len(m.dir)-7:] == "/config" },
		managers: []manager{{"bundler", []string{"Gemfile"}}}, sources: []string{".rb", ".erb"}, generated: []string{"log", "tmp", "public/assets", "storage"}, caches: []string{".bundle/cache"},
	},
	{
		name: "Ruby", manifests: []string{"Gemfile", "*.gemspec"}, managers: []manager{{"bundler", []string{"Gemfile"}}}, test: rubyTests, sources: []string{".rb"},
		generated: []string{"tmp", "coverage"}, caches: []string{".bundle/cache"}, checks: rubyChecks,
	},
	{
		name: "Go", manifests: []string{"go.mod", "go.work"}, managers: []manager{{"go modules", []string{"go.mod"}}}, test: goTests, build: "go build ./...", sources: []string{".go"},
		generated: []string{"vendor", "bin"}, caches: []string{".cache/go-build", "go/pkg/mod"},
		checks: []check{
			{command: command{"go", "go vet ./..."}, configured: []string{"go.mod"}},
			{command: command{"staticcheck", "staticcheck ./..."}, configured: []string{"staticcheck.conf"}},
			{command: command{"golangci-lint", "golangci-lint run"}, configured: []string{".golangci.yml", ".golangci.yaml", ".golangci.toml"}},
			{command: command{"govulncheck", "govulncheck ./..."}},
		},
	},
	{
		name: "Rust", manifests: []string{"Cargo.toml"}, managers: []manager{{"cargo", []string{"Cargo.toml"}}}, test: rustTests, build: "cargo build", sources: []string{".rs"},
		generated: []string{"target"}, caches: []string{".cargo/registry", ".cargo/git"},
		checks: []check{{command: command{"cargo-clippy", "cargo clippy -q"}, configured: []string{"clippy.toml", ".clippy.toml"}}},
	},
	{
		name: "Python", manifests: []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini", "manage.py"}, test: pythonTests, sources: []string{".py"},
		managers: []manager{{"poetry", []string{"poetry.lock"}}, {"uv", []string{"uv.lock"}}, {"pipenv", []string{"Pipfile"}}, {"pdm", []string{"pdm.lock"}}, {"hatch", []string{"hatch.toml"}},
			{"pip", []string{"requirements.txt", "setup.py", "pyproject.toml"}}, {"tox", []string{"tox.ini"}}},
		generated: []string{"__pycache__", ".venv", "venv", ".tox", "dist"}, caches: []string{".cache/pip", ".cache/uv", ".cache/pypoetry"}, checks: pythonChecks,
	},
	{
		name: "TypeScript", manifests: []string{"tsconfig.json"}, sources: []string{".ts", ".tsx"}, generated: []string{"dist"}, checks: []check{
			{command: command{"node_modules/.bin/tsc", "npx tsc --noEmit"}, configured: []string{"tsconfig.json"}},
		},
	},
	{
		name: "JavaScript", manifests: []string{"package.json"}, test: scriptTests, sources: []string{".js", ".jsx", ".mjs", ".cjs"},
		managers:  scriptManagers,
		generated: []string{"node_modules", "dist", "build", ".next"}, caches: []string{".npm/_cacache", ".cache/yarn", ".local/share/pnpm"}, checks: []check{
			{command: command{"node_modules/.bin/eslint", "npx eslint ."}, configured: []string{"eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc", ".eslintrc.js",
				".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml"}},
		},
	},
	{
		name: "Deno", manifests: []string{"deno.json", "deno.jsonc"}, test: always(command{"deno", "deno test -A"}), sources: []string{".ts", ".js"}, caches: []string{".cache/deno"},
	},
	{
		name: "Java", manifests: []string{"pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"},
		managers: []manager{{"maven", []string{"pom.xml"}}, {"gradle", []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}}}, test: javaTests,
		sources: []string{".java", ".kt", ".scala", ".groovy"}, generated: []string{"target", "build", ".gradle"}, caches: []string{".m2/repository", ".gradle/caches", ".gradle/wrapper"},
	},
	{
		name: "PHP", manifests: []string{"composer.json"}, managers: []manager{{"composer", []string{"composer.json"}}}, test: phpTests, sources: []string{".php"},
		generated: []string{"vendor"}, caches: []string{".cache/composer"}, checks: []check{
			{command: command{"vendor/bin/phpstan", "vendor/bin/phpstan analyse --no-progress"}, configured: []string{"phpstan.neon", "phpstan.neon.dist"}},
		},
	},
	{
		name: "C/C++", manifests: []string{"CMakeLists.txt", "meson.build", "configure.ac", "Makefile", "GNUmakefile", "makefile"},
		is: func(m module) bool {
			return m.hasFile("*.c", "*.cc", "*.cpp", "*.cxx") && !m.holds("go.mod", "Cargo.toml", "package.json", "pyproject.toml")
		},
		managers: []manager{{"cmake", []string{"CMakeLists.txt"}}, {"meson", []string{"meson.build"}}, {"autotools", []string{"configure.ac"}}, {"make", []string{"Makefile", "GNUmakefile", "makefile"}}},
		test:     nativeTests, sources: []string{".c", ".cc", ".cpp", ".cxx", ".h", ".hpp"}, generated: []string{"build", "builddir"}, caches: []string{".cache/ccache"},
	},
	{
		name: ".NET", manifests: []string{"*.sln", "*.csproj", "*.fsproj"}, managers: []manager{{"nuget", []string{"*"}}}, test: always(command{"dotnet", "dotnet test"}), build: "dotnet build",
		sources: []string{".cs", ".fs"}, generated: []string{"bin", "obj"}, caches: []string{".nuget/packages"},
	},
	{
		name: "Elixir", manifests: []string{"mix.exs"}, managers: []manager{{"mix", []string{"mix.exs"}}}, test: always(command{"mix", "mix test"}), build: "mix compile", sources: []string{".ex", ".exs"},
		generated: []string{"_build", "deps"},
	},
	{
		name: "MkDocs", manifests: []string{"mkdocs.yml", "mkdocs.yaml"}, test: always(command{"mkdocs", `mkdocs build -q --strict --site-dir "$TMPDIR/site"`}), sources: []string{".md"}, generated: []string{"site"},
	},
	{
		name: "Hugo", manifests: []string{"hugo.toml", "hugo.yaml", "hugo.json", "config.toml"}, is: func(m module) bool {
			return m.first("hugo.toml", "hugo.yaml", "hugo.json") != "" || m.hasBelow(m.at("content"))
		},
		test: always(command{"hugo", `hugo --quiet --destination "$TMPDIR/site"`}), sources: []string{".md"}, generated: []string{"public", "resources"},
	},
	{
		name: "Docusaurus", manifests: []string{"docusaurus.config.js", "docusaurus.config.ts"}, sources: []string{".md", ".mdx"}, generated: []string{"build", ".docusaurus"},
	},
	{
		name: "Sphinx", manifests: []string{"conf.py"}, is: func(m module) bool { return m.holds("index.rst", "index.md") },
		test: always(command{"sphinx-build", `sphinx-build -q -W . "$TMPDIR/site"`}), sources: []string{".rst", ".md"}, generated: []string{"_build"},
	},
}

// always returns a function that returns the same command for every module.
func always(c command) func(module) []command { return func(module) []command { return []command{c} } }

// documents lists the stacks of codebases that have only documents.
var documents = []string{"Markdown", "MkDocs", "Hugo", "Docusaurus", "Sphinx"}
