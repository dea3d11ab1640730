package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/machine/machinetest"
)

// A sampleProject is a codebase as a new user finds it, without anything of Lockkeeper. Its tests fail
// until an agent changes the word old in one file.
type sampleProject struct {
	files   map[string]string
	file    string // the file that the agent changes
	found   string // what init says it found
	command string // what init proposes as the test command
	needs   string // the program that the tests need
}

// tested is the target test of a project whose own toolchain may be missing. It checks the file.
func tested(file string) string { return "test:\n\tgrep -q new '" + file + "'\n" }

var sampleProjects = map[string]sampleProject{
	"go": {map[string]string{"go.mod": "module example.org/m\n\ngo 1.24\n", "word/word.go": "package word\n\nconst Word = \"old\"\n",
		"word/word_test.go": "package word\n\nimport \"testing\"\n\nfunc TestWord(t *testing.T) {\n\tif Word != \"new\" {\n\t\tt.Fatal(Word)\n\t}\n}\n"}, "word/word.go", "Go, go modules", "go test ./...", "go"},
	"python": {map[string]string{"pyproject.toml": "[project]\nname = \"word\"\n", "word/__init__.py": "WORD = 'old'\n", "tests/__init__.py": "",
		"tests/test_word.py": "import unittest\nfrom word import WORD\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(WORD, 'new')\n"}, "word/__init__.py", "Python, pip", "python3 -m unittest discover -s tests -t .", "python3"},
	"typescript": {map[string]string{"package.json": `{"scripts": {"test": "vitest run"}}`, "package-lock.json": "{}", "tsconfig.json": "{}", "src/word.ts": "export const word = 'old'\n", "Makefile": tested("src/word.ts")},
		"src/word.ts", "TypeScript, JavaScript, npm", "make test", "make"},
	"rust": {map[string]string{"Cargo.toml": "[package]\nname = \"word\"\nversion = \"0.1.0\"\n", "src/lib.rs": "pub const WORD: &str = \"old\";\n", "Makefile": tested("src/lib.rs")},
		"src/lib.rs", "Rust, cargo", "make test", "make"},
	"java": {map[string]string{"pom.xml": "<project/>\n", "src/main/java/Word.java": "class Word { String word = \"old\"; }\n", "src/test/java/WordTest.java": "class WordTest {}\n", "mvnw": "#!/bin/sh\ngrep -q new src/main/java/Word.java\n"},
		"src/main/java/Word.java", "Java, maven", "./mvnw -q -B test", "sh"},
	"rails": {map[string]string{"Gemfile": "gem 'rails'\n", "config/application.rb": "", "app/models/word.rb": "WORD = 'old'\n", "test/models/word_test.rb": "", "bin/rails": "#!/bin/sh\ngrep -q new app/models/word.rb\n"},
		"app/models/word.rb", "Rails, Ruby, bundler", "bin/rails test", "sh"},
	"php": {map[string]string{"composer.json": `{"require-dev": {"phpunit/phpunit": "*"}}`, "src/Word.php": "<?php const WORD = 'old';\n", "test.sh": "grep -q new src/Word.php\n"}, "src/Word.php", "PHP, composer", "sh test.sh", "sh"},
	"c++": {map[string]string{"Makefile": "check: word\n\t./word\nword: src/word.cpp\n\t$(CC) -x c -o word src/word.cpp\n", "src/word.cpp": "#include <string.h>\nint main(void) { return strcmp(\"old\", \"new\"); }\n", ".gitignore": "/word\n"}, "src/word.cpp", "C/C++, make", "make check", "make"},
	"monorepo": {map[string]string{"services/api/go.mod": "module example.org/api\n\ngo 1.24\n", "services/api/api.go": "package api\n\nconst Word = \"old\"\n",
		"services/api/api_test.go": "package api\n\nimport \"testing\"\n\nfunc TestWord(t *testing.T) {\n\tif Word != \"new\" {\n\t\tt.Fatal(Word)\n\t}\n}\n", "tools/lint/setup.py": "", "tools/lint/test_lint.py": "import unittest\n\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n",
		"packages/web/package.json": "{}", "packages/web/index.js": ""}, "services/api/api.go", "Go, Python, JavaScript, go modules, pip, npm", "(cd services/api && go test ./...) && (cd tools/lint && python3 -m unittest discover)", "go"},
	"Markdown":      {map[string]string{"README.md": "Read [the guide](docs/index.md#new).\n", "docs/index.md": "# old\n"}, "docs/index.md", "Markdown", "lockkeeper links --deep README.md", "git"},
	"documentation": {map[string]string{"mkdocs.yml": "site_name: word\n", "docs/index.md": "# old\n", "script/test": "#!/bin/sh\ngrep -q new docs/index.md\n"}, "docs/index.md", "MkDocs", "./script/test", "sh"},
}

// From a clone to a change that an agent made, tested and landed: four commands, and no edited
// configuration.
func TestFirstHour(t *testing.T) {
	bin := t.TempDir()
	// The agent is a plain command: it reads a prompt, changes files, and says no JSON.
	agent := "#!/bin/sh\ncat >/dev/null\nfor f in $(git ls-files 2>/dev/null || find . -type f); do case $f in *word*|*Word*|*lib.rs|*api.go|*index.md|*__init__.py) sed -i \"s/old/new/\" \"$f\" ;; esac; done\necho done\n"
	if err := os.WriteFile(filepath.Join(bin, "fixer"), []byte(agent), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, p := range sampleProjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(p.needs); err != nil {
				machinetest.Lacks(t, "%s: %v", p.needs, err)
			}
			origin := newCheckout(t, p.files)
			for file, text := range p.files {
				if strings.HasPrefix(text, "#!") {
					if err := os.Chmod(filepath.Join(origin.dir, file), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			gittest.Run(t, origin.dir, "commit", "-qam", "programs", "--allow-empty")
			plan := "tasks:\n  - name: word\n    prompt: The word is new.\n    writes: [" + p.file + "]\n"
			commands := []string{
				"git clone -q . ../clone",
				"cd ../clone && PATH=" + bin + ":$PATH lockkeeper init --yes --agent fixer",
				"cd ../clone && printf '%s' '" + plan + "' >tasks.yaml",
				"cd ../clone && PATH=" + bin + ":$PATH lockkeeper run --plan tasks.yaml --no-ui",
			}
			out, n := origin.run(commands...)
			if n != len(commands) || !strings.Contains(out, " landed: 1 file") || strings.Contains(out, "not tested") || strings.Contains(out, "fails as before the run") {
				t.Fatalf("step %d:\n%s", n+1, out)
			}
			for what, want := range map[string]string{"found": p.found, "tests": p.command, "agent": "command fixer"} {
				if !strings.Contains(out, "\n"+what+strings.Repeat(" ", 15-len(what))+want+"\n") {
					t.Errorf("it does not say %s %s:\n%s", what, want, out)
				}
			}
			text, err := os.ReadFile(filepath.Join(origin.dir, "../clone", p.file))
			if err != nil || !strings.Contains(string(text), "new") {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}
