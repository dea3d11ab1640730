package lockkeeper_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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

var (
	// link matches the target of a link to a file of the repository, without its anchor.
	link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	code = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
)

// Every link of a page leads to a file, and every page is linked from docs/README.md.
func TestPagesAreLinked(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := filepath.WalkDir("docs", func(file string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(file, ".md") {
			pages = append(pages, filepath.ToSlash(file))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var index []string
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(readText(t, page), ""), -1) {
			to := path.Join(path.Dir(page), m[1])
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
			if page == "docs/README.md" {
				index = append(index, to)
			}
		}
	}
	for _, page := range pages {
		if page != "docs/README.md" && page != "README.md" && !slices.Contains(index, page) {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
}

// The MCP registry accepts server.json only with a short description, and with the name that the npm
// package declares.
func TestRegistryEntry(t *testing.T) {
	var entry struct {
		Schema      string `json:"$schema"`
		Name        string
		Description string
		Version     string
		Packages    []struct {
			RegistryType, Identifier, Version string
			Transport                         struct{ Type string }
		}
	}
	var npm struct {
		Name, Version, McpName string
		OptionalDependencies   map[string]string
	}
	for file, into := range map[string]any{"server.json": &entry, "npm/lockkeeper/package.json": &npm} {
		if err := json.Unmarshal([]byte(readText(t, file)), into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if len(entry.Packages) != 1 || entry.Packages[0].Identifier != npm.Name || entry.Packages[0].RegistryType != "npm" || entry.Packages[0].Transport.Type != "stdio" {
		t.Errorf("server.json does not start the npm package: %+v", entry.Packages)
	}
	if entry.Name != npm.McpName || !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(entry.Name) {
		t.Errorf("server.json has the name %q, npm's package %q", entry.Name, npm.McpName)
	}
	if n := len(entry.Description); n == 0 || n > 100 {
		t.Errorf("the description in server.json has %d bytes; the registry accepts 1 to 100", n)
	}
	// scripts/release replaces this version everywhere.
	for _, v := range []string{entry.Version, entry.Packages[0].Version, npm.Version, npm.OptionalDependencies["lockkeeper-linux-x64"], npm.OptionalDependencies["lockkeeper-linux-arm64"]} {
		if v != "0.0.0" {
			t.Errorf("a version is %q, not 0.0.0", v)
		}
	}
}
