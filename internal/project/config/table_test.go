package config

import (
	"slices"
	"strings"
	"testing"
)

// A table keeps the order of the file, and its values know their position.
//
// shows: CF-41
func TestTableKeepsOrderAndPlaces(t *testing.T) {
	c, err := load(t, `resources:
  Style:
    files: [a.md,
      b.md]
  Chapter_{nn}:
    files: ["c/{nn}/"]
  Empty:
operations:
  edit:
    write: [Style]
`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Resources.Names(), []string{"Style", "Chapter_{nn}", "Empty"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	if row := c.Resources.Row("Style"); !slices.Equal(row.Files, []string{"a.md", "b.md"}) {
		t.Errorf("files %q", row.Files)
	}
	if c.Resources.Row("Nothing") != nil {
		t.Error("a row that is not in the file")
	}
	for _, at := range []struct {
		place, want string
	}{
		{c.Place("resources.Style"), ":2:3"},
		{c.Place("resources.Style.files", 1), ":4:7"},
		{c.Place("resources.Chapter_{nn}.files", 0), ":6:13"},
		{c.Place("resources.Empty.files", 0), ":7:3"}, // the nearest existing heading
		{c.Place("operations.edit.write", 0), ":10:13"},
	} {
		if !strings.HasSuffix(at.place, FileName+at.want) {
			t.Errorf("place %s, want %s", at.place, at.want)
		}
	}
	if place := c.Place("lock_timeout"); place != "default" {
		t.Errorf("place of a default: %s", place)
	}
	for _, v := range c.Values() {
		if strings.HasPrefix(v.Key, "resources.") && v.Value == "" {
			t.Errorf("%+v says nothing", v)
		}
	}
	if v := valueOf(t, c, "resources.Chapter_{nn}.files"); v.Value != "c/{nn}/" || v.Source != FileName+":6" {
		t.Errorf("%+v", v)
	}
}

func TestTableRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"resources: {Style: {fils: [a]}}":                 "did you mean files?",
		"resource: {Style: {files: [a]}}":                 "did you mean resources?",
		"resources: {a.b: {files: [a]}}":                  `1:13: resources "a.b": not a name of letters`,
		"resources: {3: {files: [a]}}":                    "not a plain word",
		"resources: {Style: a.md}":                        `resources.Style "…": must hold keys and values`,
		"operations: {a: {max_objects: many}}":            "must be a whole number",
		"resources:\n  A: {files: [a]}\n  A: {files: []}": "3:3",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
