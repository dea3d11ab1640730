package failure

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A form recognizes a line about a failed test. The groups of its pattern form the name.
type form struct {
	pattern *regexp.Regexp
	prefix  string // precedes the name, so that equal names of two forms differ
}

// forms match failures that one line reports.
var forms = []form{
	{regexp.MustCompile(`^FAILED (\S+::.*?)(?: - .*)?$`), ""},                                                     // pytest
	{regexp.MustCompile(`^ERROR (\S+(?:::\S+)?)(?: - (.*))?$`), "error in "},                                      // pytest, which could not collect
	{regexp.MustCompile(`^(?:FAIL|ERROR): (\S+ \([\w.]+\).*?)$`), ""},                                             // unittest
	{regexp.MustCompile(`^rspec '?(\S+?)(?::\d+|\[[\d:,]+\])'?( # .*)$`), ""},                                     // RSpec
	{regexp.MustCompile(`^An error occurred while loading (\S+?)\.?$`), "error in "},                              // RSpec
	{regexp.MustCompile(`^test (\S.*?) \.\.\. FAILED$`), ""},                                                      // cargo
	{regexp.MustCompile(`^(?:\[ERROR\]\s+)?(\S+?)\s+(?:--\s+)?Time elapsed:.*<<< (?:FAILURE|ERROR)!$`), ""},       // JUnit, Maven
	{regexp.MustCompile(`^(\S.*? > \S.*?) FAILED$`), ""},                                                          // JUnit, Gradle
	{regexp.MustCompile(`^\s+(?:×|✗|FAIL)\s+(\S+\.\w+(?: \[.*?\])?(?: > .*?)?)(?:\s+\d+(?:\.\d+)?\s?m?s)?$`), ""}, // Vitest
	{regexp.MustCompile(`^\s*✗ (\S.*?)(?: \(\d+(?:\.\d+)? ?m?s\))?$`), ""},                                        // others of JavaScript
	{regexp.MustCompile(`^FAIL\s+(\S+)\s+(\[(?:build|setup) failed\])$`), ""},                                     // go
	{regexp.MustCompile(`^(?:vet: )?((?:\./)?[^\s:]+\.go):\d+(?::\d+)?(: .*)$`), "error in "},                     // go, which could not compile
}

// testsIn returns the names of the failed tests that an output has, sorted.
func testsIn(output string) []string {
	found := map[string]bool{}
	lines := strings.Split(output, "\n")
	for _, line := range lines {
		for _, f := range forms {
			if m := f.pattern.FindStringSubmatch(line); m != nil {
				found[f.prefix+strings.TrimSpace(strings.Join(slices.DeleteFunc(m[1:], func(part string) bool { return part == "" }), " "))] = true
				break
			}
		}
	}
	for _, read := range []func(lines []string, found map[string]bool){goTests, goEvents, minitests, jestTests, mochaTests, junitFiles} {
		read(lines, found)
	}
	return slices.Sorted(maps.Keys(found))
}

var (
	goTest    = regexp.MustCompile(`^\s*--- FAIL: (\S+) \(`)
	goPackage = regexp.MustCompile(`^(?:FAIL|ok  )\t(\S+)\t`)
)

// goTests reads the output of go test. The line of the package follows the lines of its tests. A
// package that fails without a failing test is reported by its own name.
func goTests(lines []string, found map[string]bool) {
	var tests []string
	for _, line := range lines {
		if m := goTest.FindStringSubmatch(line); m != nil {
			tests = append(tests, m[1])
			continue
		}
		m := goPackage.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if strings.HasPrefix(line, "FAIL") && len(tests) == 0 {
			found[m[1]] = true
		}
		for _, test := range tests {
			found[m[1]+"."+test] = true
		}
		tests = nil
	}
	for _, test := range tests { // a single package, whose line is missing
		found[test] = true
	}
}

// goEvents reads the output of go test -json.
func goEvents(lines []string, found map[string]bool) {
	for _, line := range lines {
		if !strings.HasPrefix(line, `{"`) || !strings.Contains(line, `"fail"`) {
			continue
		}
		var event struct{ Action, Package, Test string }
		if json.Unmarshal([]byte(line), &event) == nil && event.Action == "fail" && event.Package != "" {
			found[strings.TrimSuffix(event.Package+"."+event.Test, ".")] = true
		}
	}
}

var (
	minitestHead = regexp.MustCompile(`^\s*(?:\d+\) )?(?:Failure|Error):$`)
	minitestName = regexp.MustCompile(`^\s*(\S.*?#\S.*?)(?: \[[^\]]*\])?:?$`)
)

func minitests(lines []string, found map[string]bool) {
	for i, line := range lines[:len(lines)-1] {
		if minitestHead.MatchString(line) {
			if m := minitestName.FindStringSubmatch(lines[i+1]); m != nil {
				found[m[1]] = true
			}
		}
	}
}

var (
	jestFile = regexp.MustCompile(`^FAIL\s+(?:\S+ )?(\S+\.\w+)(?: \([\d.]+ m?s\))?$`)
	jestTest = regexp.MustCompile(`^\s+● (.+)$`)
)

// jestTests reads the output of Jest, where the line of the file precedes its tests.
func jestTests(lines []string, found map[string]bool) {
	file := ""
	for _, line := range lines {
		if m := jestFile.FindStringSubmatch(line); m != nil {
			file = m[1]
		} else if m := jestTest.FindStringSubmatch(line); m != nil && file != "" && m[1] != "Console" {
			found[file+" "+m[1]] = true
		}
	}
}

var (
	mochaCount = regexp.MustCompile(`^\s+\d+ failing$`)
	mochaTest  = regexp.MustCompile(`^\s+\d+\) (\S.*)$`)
)

// mochaTests reads the list of failures of Mocha. A name can have several lines, and ends with a
// colon.
func mochaTests(lines []string, found map[string]bool) {
	at := slices.IndexFunc(lines, mochaCount.MatchString)
	if at < 0 {
		return
	}
	var name []string
	for _, line := range lines[at+1:] {
		m := mochaTest.FindStringSubmatch(line)
		switch {
		case m != nil:
			name = []string{m[1]}
		case len(name) > 0:
			name = append(name, strings.TrimSpace(line))
		}
		if len(name) > 0 && strings.HasSuffix(name[len(name)-1], ":") {
			found[strings.TrimSuffix(strings.Join(name, " "), ":")] = true
			name = nil
		}
	}
}

var (
	junitCase  = regexp.MustCompile(`<testcase\b([^>]*)>`)
	junitClass = regexp.MustCompile(`\bclassname="([^"]*)"`)
	junitName  = regexp.MustCompile(`(?:^|\s)name="([^"]*)"`)
)

// junitFiles reads JUnit's XML, where the failure is inside the element of its test.
func junitFiles(lines []string, found map[string]bool) {
	name := ""
	for _, line := range lines {
		if m := junitCase.FindStringSubmatch(line); m != nil {
			name = ""
			if n := junitName.FindStringSubmatch(m[1]); n != nil && !strings.HasSuffix(m[1], "/") {
				name = n[1]
				if c := junitClass.FindStringSubmatch(m[1]); c != nil {
					name = c[1] + "." + name
				}
			}
		}
		if name != "" && (strings.Contains(line, "<failure") || strings.Contains(line, "<error")) {
			found[name] = true
		}
	}
}
