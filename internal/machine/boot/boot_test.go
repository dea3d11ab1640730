package boot

import (
	"strings"
	"testing"
)

func TestSame(t *testing.T) {
	for name, test := range map[string]struct {
		a, b string
		same bool
	}{
		"equal":                          {"x@1800000000", "x@1800000000", true},
		"same id, clock was set":         {"x@1800000000", "x@1900000000", true},
		"id of an earlier version":       {"x", "x@1800000000", true},
		"other id, same start":           {"x@1800000000", "y@1800000001", true},
		"other id, later start":          {"x@1800000000", "y@1800000060", false},
		"other id, start of one unknown": {"x@1800000000", "y", false},
		"other ids":                      {"before", "after", false},
		"never used":                     {"", "x@1800000000", false},
		"nonsense":                       {"x@soon", "y@soon", false},
	} {
		if got := Same(test.a, test.b); got != test.same {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestStampIsStable(t *testing.T) {
	a, err := Stamp()
	if err != nil {
		t.Skip(err) // not Linux
	}
	b, err := Stamp()
	id, _ := ID()
	if err != nil || !Same(a, b) || !strings.HasPrefix(a, id+"@") {
		t.Errorf("%q, %q, %v", a, b, err)
	}
}
