package detect

import (
	"encoding/json"
	"regexp"
	"strings"
)

// declared lists the ways in which a codebase declares the command that tests all of it.
var declared = []struct {
	files   []string
	target  *regexp.Regexp // what the file must contain; nil: nothing
	program string         // the program that must be installed; empty: the file itself
	text    string
}{
	{[]string{"Makefile", "GNUmakefile", "makefile"}, regexp.MustCompile(`(?m)^test[ \t]*::?([^=]|$)`), "make", "make test"},
	{[]string{"Makefile", "GNUmakefile", "makefile"}, regexp.MustCompile(`(?m)^check[ \t]*::?([^=]|$)`), "make", "make check"},
	{[]string{"justfile", "Justfile", ".justfile"}, regexp.MustCompile(`(?m)^@?test( [^:=]*)?:([^=]|$)`), "just", "just test"},
	{[]string{"Taskfile.yml", "Taskfile.yaml"}, regexp.MustCompile(`(?m)^  test:`), "task", "task test"},
	{[]string{"bin/test", "script/test", "scripts/test", "scripts/test.sh", "test.sh", "run_tests.sh", "run-tests.sh"}, nil, "", ""},
}

// declaredTest returns the command that the codebase declares itself.
func (t *tree) declaredTest() (command, bool) {
	for _, d := range declared {
		for _, file := range d.files {
			switch {
			case !t.set[file] || d.target != nil && !d.target.MatchString(t.read(file)):
			case d.program != "" && t.installed(d.program):
				return command{d.program, d.text}, true
			case d.program == "" && t.isProgram(file):
				return command{"./" + file, "./" + file}, true
			case d.program == "" && strings.HasSuffix(file, ".sh"):
				return command{"sh", "sh " + file}, true
			}
		}
	}
	return command{}, false
}

func goTests(m module) []command {
	if m.manifest != "go.work" && !m.holds("go.work") {
		return []command{{"go", "go test ./..."}}
	}
	text, words := m.text("go.work"), []string{}
	for _, found := range regexp.MustCompile(`(?m)^(?:use)?[ \t]+(\.[^ \t\r\n]*)`).FindAllStringSubmatch(text, -1) {
		words = append(words, strings.TrimSuffix(found[1], "/")+"/...")
	}
	return []command{{"go", "go test " + strings.Join(words, " ")}}
}

func rustTests(m module) []command {
	if m.mentions("Cargo.toml", "[workspace]") {
		return []command{{"cargo", "cargo test --workspace"}}
	}
	return []command{{"cargo", "cargo test"}}
}

func javaTests(m module) []command {
	if m.holds("pom.xml") {
		return []command{{"./mvnw", "./mvnw -q -B test"}, {"mvn", "mvn -q -B test"}}
	}
	return []command{{"./gradlew", "./gradlew -q test"}, {"gradle", "gradle -q test"}}
}

func phpTests(m module) (list []command) {
	var manifest struct {
		Scripts map[string]any `json:"scripts"`
	}
	if json.Unmarshal([]byte(m.text("composer.json")), &manifest) == nil && manifest.Scripts["test"] != nil {
		list = append(list, command{"composer", "composer test"})
	}
	return append(list, command{"vendor/bin/phpunit", "vendor/bin/phpunit"}, command{"vendor/bin/pest", "vendor/bin/pest"}, command{"phpunit", "phpunit"})
}

// nativeTests builds outside of the workspace, so that no build output becomes part of a change.
func nativeTests(m module) []command {
	const dir = `"$TMPDIR/build"`
	switch {
	case m.holds("CMakeLists.txt"):
		return []command{{"cmake", "cmake -S . -B " + dir + " && cmake --build " + dir + " && ctest --test-dir " + dir + " --output-on-failure"}}
	case m.holds("meson.build"):
		return []command{{"meson", "meson setup " + dir + " && meson test -C " + dir}}
	case m.holds("configure.ac"):
		return []command{{"make", "./configure && make check"}}
	}
	return []command{{"make", "make"}}
}

func rubyTests(m module) []command {
	bundle := func(words string) command {
		if m.holds("Gemfile") {
			return command{"bundle", "bundle exec " + words}
		}
		return command{strings.Fields(words)[0], words}
	}
	switch {
	case m.holds("config/application.rb") && m.hasBelow(m.at("spec")):
		return []command{bundle("rspec")}
	case m.holds("config/application.rb"):
		return []command{{"bin/rails", "bin/rails test"}, bundle("rails test")}
	case m.hasFile("*_spec.rb"):
		return []command{bundle("rspec")}
	case m.holds("Rakefile"):
		return []command{bundle("rake test")}
	case m.hasFile("*_test.rb", "test_*.rb"):
		return []command{{"ruby", `ruby -Ilib -Itest -e 'Dir["test/**/{*_test,test_*}.rb"].each { |f| require "./#{f}" }'`}}
	}
	return nil
}
