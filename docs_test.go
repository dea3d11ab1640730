package lockkeeper_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// quoted matches a path in backticks, and firstColumn the first cell of a table row.
	quoted      = regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]+)*/?)`")
	firstColumn = regexp.MustCompile("(?m)^\\| (`[^|]+) \\|")
)

// pathsIn returns the paths in backticks.
func pathsIn(text string) (paths []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		paths = append(paths, m[1])
	}
	return paths
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every path that CONTRIBUTING.md names exists.
func TestContributingNamesFiles(t *testing.T) {
	found := 0
	for _, path := range pathsIn(readText(t, "CONTRIBUTING.md")) {
		if !strings.Contains(path, "/") && !strings.HasSuffix(path, ".go") {
			continue
		}
		found++
		if _, err := os.Stat(path); err != nil {
			t.Errorf("CONTRIBUTING.md names %s: %v; next: name the file that has this code now", path, err)
		}
	}
	if found < 50 {
		t.Errorf("found only %d paths", found)
	}
}

// The table of packages in docs/design.md lists every package, except those for tests.
func TestDesignListsPackages(t *testing.T) {
	_, table, _ := strings.Cut(readText(t, "docs/design.md"), "| package | has |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed, packages []string
	for _, m := range firstColumn.FindAllStringSubmatch(table, -1) {
		listed = append(listed, pathsIn(m[1])...)
	}
	for _, f := range moduleSources(t) {
		if !f.isTest() && !slices.Contains(testSupport, f.dir) {
			packages = append(packages, f.dir)
		}
	}
	slices.Sort(listed)
	slices.Sort(packages)
	packages = slices.Compact(packages)
	for _, dir := range packages {
		if !slices.Contains(listed, dir) {
			t.Errorf("docs/design.md does not list %s; next: add it to the table of packages", dir)
		}
	}
	for _, dir := range listed {
		if !slices.Contains(packages, dir) {
			t.Errorf("docs/design.md lists %s, which is not a package", dir)
		}
	}
}
