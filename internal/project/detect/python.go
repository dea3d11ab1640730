package detect

import (
	"strings"

	"lockkeeper/internal/project/generated"
)

// pythonRunners start a program in the environment of a package manager.
var pythonRunners = []struct{ file, program, prefix string }{
	{"poetry.lock", "poetry", "poetry run "},
	{"uv.lock", "uv", "uv run "},
	{"Pipfile", "pipenv", "pipenv run "},
	{"pdm.lock", "pdm", "pdm run "},
}

// python returns the program that must be installed to start a module's interpreter, and the start
// of the command line.
func (m module) python() (program, start string) {
	for _, dir := range []string{".venv", "venv"} {
		if at := dir + "/bin/python"; m.onDisk(at) {
			return at, at
		}
	}
	for _, r := range pythonRunners {
		if m.holds(r.file) && m.installed(r.program) {
			return r.program, r.prefix + "python"
		}
	}
	if m.installed("python3") {
		return "python3", "python3"
	}
	return "python", "python"
}

// pythonTests returns the tests of a Python project: those of pytest if it is used, of Django, or
// of unittest.
func pythonTests(m module) []command {
	program, python := m.python()
	path := ""
	if m.hasBelow(m.at("src")) { // a package that an environment has installed is that of the codebase, not that of the workspace
		path = "PYTHONPATH=src "
	}
	dir := ""
	for _, name := range []string{"tests", "test"} {
		if m.hasBelow(m.at(name)) {
			dir = name
			break
		}
	}
	switch {
	case m.usesPytest():
		return []command{{program, path + python + " -m pytest -q"}}
	case m.holds("manage.py"):
		return []command{{program, python + " manage.py test"}}
	case dir != "" && m.holds(dir+"/__init__.py"):
		return []command{{program, path + python + " -m unittest discover -s " + dir + " -t ."}}
	case dir != "" && path == "":
		return []command{{program, "PYTHONPATH=. " + python + " -m unittest discover -s " + dir}}
	case dir != "":
		return []command{{program, path + python + " -m unittest discover -s " + dir}}
	case m.hasFile("test_*.py"):
		return []command{{program, path + python + " -m unittest discover"}}
	case m.holds("tox.ini"):
		return []command{{"tox", "tox -q"}}
	}
	return nil
}

// usesPytest reports whether the files of a project name pytest, or its tests need it.
func (m module) usesPytest() bool {
	if m.holds("pytest.ini") || m.hasFile("conftest.py") ||
		m.anyMentions("pytest", "pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "requirements.txt", "requirements-dev.txt", "requirements/dev.txt", "requirements/tests.txt", "dev-requirements.txt", "Pipfile", "noxfile.py") {
		return true
	}
	looked := 0
	for _, name := range m.below() {
		base := name[strings.LastIndex(name, "/")+1:]
		if !matches(base, []string{"test_*.py", "*_test.py"}) || generated.Contains(name) {
			continue
		}
		text := m.read(name)
		if strings.Contains(text, "unittest") || looked == 20 {
			return false
		}
		if strings.Contains(text, "import pytest") || strings.HasPrefix(text, "def test_") || strings.Contains(text, "\ndef test_") {
			return true
		}
		looked++
	}
	return false
}

var pythonChecks = []check{
	{command: command{"ruff", "ruff check ."}, configured: []string{"ruff.toml", ".ruff.toml"}, in: func(m module) bool { return m.mentions("pyproject.toml", "[tool.ruff") }},
	{command: command{".venv/bin/ruff", ".venv/bin/ruff check ."}, configured: []string{"ruff.toml", ".ruff.toml"}, in: func(m module) bool { return m.mentions("pyproject.toml", "[tool.ruff") }},
	{command: command{"mypy", "mypy ."}, configured: []string{"mypy.ini", ".mypy.ini"}, in: func(m module) bool { return m.anyMentions("mypy]", "pyproject.toml", "setup.cfg") }},
	{command: command{".venv/bin/mypy", ".venv/bin/mypy ."}, configured: []string{"mypy.ini", ".mypy.ini"}, in: func(m module) bool { return m.anyMentions("mypy]", "pyproject.toml", "setup.cfg") }},
}

var rubyChecks = []check{
	{command: command{"bin/rubocop", "bin/rubocop"}, configured: []string{".rubocop.yml"}},
	{command: command{"rubocop", "bundle exec rubocop"}, configured: []string{".rubocop.yml"}, in: func(m module) bool { return m.mentions("Gemfile.lock", " rubocop ") }},
	{command: command{"bin/brakeman", "bin/brakeman -q --no-pager"}, configured: []string{"bin/brakeman"}},
	{command: command{"brakeman", "brakeman -q --no-pager"}, in: func(m module) bool { return m.mentions("Gemfile.lock", " brakeman ") }},
	{command: command{"bin/bundler-audit", "bin/bundler-audit check"}, configured: []string{"bin/bundler-audit"}},
	{command: command{"bundle-audit", "bundle-audit check"}, in: func(m module) bool { return m.mentions("Gemfile.lock", " bundler-audit ") }},
}
