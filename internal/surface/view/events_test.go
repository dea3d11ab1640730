package view_test

import (
	"testing"

	"lockkeeper"
	"lockkeeper/internal/surface/view"
)

// A gap says what is known of it, and no more: what locks name already is not said twice.
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
