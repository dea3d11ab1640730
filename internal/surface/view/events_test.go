package view_test

import (
	"testing"

	"lockkeeper"
	"lockkeeper/internal/surface/view"
)

// The text of a gap contains only the known facts.
func TestGapWords(t *testing.T) {
	for want, data := range map[string]map[string]string{
		"write a.rb, kept as 7": {"path": "a.rb", "rescue": "7"},
		"write a.rb, not kept":  {"path": "a.rb"},
		"kept as 7":             {"rescue": "7"},
		"not kept":              {},
	} {
		if got := view.GapText(lockkeeper.Event{Kind: lockkeeper.EventGap, Data: data}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
