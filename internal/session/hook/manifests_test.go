package hook_test

import "testing"

// A package manager rewrites files that its command does not name. If another session holds one of
// them, the command is refused, in every language. Commands that leave these files as they are pass.
func TestPackageManagers(t *testing.T) {
	s := newStage(t)
	files := []string{"package.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "go.mod", "pyproject.toml", "poetry.lock", "uv.lock", "Pipfile.lock", "Cargo.lock", "Gemfile.lock", "composer.lock", "deno.json"}
	for _, f := range files {
		s.write(f, "\n")
	}
	s.write("web/src/index.ts", "\n")
	s.write("api/package.json", "\n")
	for _, f := range files {
		s.edits("A", f, "half\n")
	}
	for _, command := range []string{"npm install left-pad", "npm i -D x", "npm uninstall x", "npm version patch", "npm pkg set a=b", "cd web/src && npm install x", "pnpm add x", "pnpm up",
		"yarn add x", "bun add x", "deno add npm:x", "go get example.org/x@latest", "go mod tidy", "go mod edit -go=1.21", "poetry add x", "poetry lock", "uv add x", "uv lock", "pipenv install x",
		"cargo update", "cargo add x", "bundle update x", "composer require x/y", "env -C web npm install x", "npm ci && npm install x"} {
		if r := s.bash("B", "PreToolUse", command); r.code != 2 {
			t.Errorf("passed: %s", command)
		}
	}
	for _, command := range []string{"npm ci", "npm install", "npm test", "npm pkg get name", "npm ls", "npm install -g x", "cd api && npm install x", "npm install --prefix api x", "pnpm install", "yarn", "go mod download",
		"go mod graph", "go build ./...", "poetry show", "poetry install", "uv sync", "uv pip install x", "cargo build", "bundle install", "bundle exec rake", "composer install", "pip install x"} {
		if r := s.bash("B", "PreToolUse", command); r.code != 0 {
			t.Errorf("%s: %s", command, r.all())
		}
		s.bash("B", "PostToolUse", command)
	}
	s.passes(s.claude("A", "Stop", "", nil))
	s.passes(s.bash("B", "PreToolUse", "npm install left-pad"))
}
