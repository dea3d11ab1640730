package api

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each route on the page about the source documents is in the table of routes.
func TestSourceDocumentsNameRoutes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "source-documents.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, found := routes(), 0
	named := regexp.MustCompile("`((?:GET|POST|PUT|DELETE) /[^`]*)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|") // theirs, ours, the difference
		if len(cells) < 4 {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(cells[2], -1) {
			if found++; !slices.ContainsFunc(table, func(rt route) bool { return rt.key() == m[1] }) {
				t.Errorf("%s is no route", m[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d routes were found", found)
	}
}
