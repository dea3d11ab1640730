package config

import (
	"fmt"
	"testing"
)

func TestSuggest(t *testing.T) {
	var many []string
	for n := range 255 {
		many = append(many, fmt.Sprintf("admin/unit%03d", n))
	}
	for typed, want := range map[string]string{
		"admin/unit0007": "did you mean admin/unit000?", "unit25": "did you mean admin/unit250, admin/unit251, admin/unit252, admin/unit253, admin/unit254?",
		"ADMIN": "did you mean admin/unit000, admin/unit001, admin/unit002, admin/unit003, admin/unit004 and 250 more?",
		"zebra": "use one of admin/unit000, admin/unit001, admin/unit002, admin/unit003, admin/unit004 and 250 more, or a pattern such as admin/*",
	} {
		if got := Suggest(typed, many); got != want {
			t.Errorf("%s: %s", typed, got)
		}
	}
	if got := Suggest("zebra", []string{"a", "b"}); got != "use one of a, b" {
		t.Error(got)
	}
}
