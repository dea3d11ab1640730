package acts_test

import (
	"testing"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
)

// an entry has values by field.
type entry map[string][]string

func (e entry) Field(name string) []string { return e[name] }

func TestWhere(t *testing.T) {
	fields := []string{"kind", "unit", "text", "impact", "path"}
	e := entry{"kind": {"plan"}, "unit": {"admin/users"}, "text": {"Split, then paginate the Index"}, "impact": {"medium"}, "path": {"app/a.rb", "test/a_test.rb"}}
	for text, want := range map[string]bool{
		"": true, "all": true, "unit=admin/*": true, "unit=admin": false, "unit=**": true, "unit!=admin/*": false, "kind=plan,unit=admin/users": true,
		"kind=item": false, "kind!=item": true, "text=paginate": true, `text="split, then"`: true, `text="split, then",impact>=high`: false,
		"impact>=medium": true, "impact<=medium": true, "impact<=low": false, "impact!=low": true, "path=test/**": true, "path=lib/**": false,
		" Unit = admin/* , Impact >= LOW ": true,
	} {
		w, err := acts.ParseWhere(text, fields)
		if err != nil || w.Selects(e) != want {
			t.Errorf("%q: %v, %v", text, w.Selects(e), err)
		}
	}
	if w, err := acts.ParseWhere("impact<=high", fields); err != nil || w.Selects(entry{}) {
		t.Errorf("an entry without a rating is selected: %v", err)
	}
	for _, text := range []string{"size=3", "unit", "unit=", "unit>=x", "impact>=huge", "impact=", ",", "all,unit=x", "kind<plan", "unit=[", "=x"} {
		if _, err := acts.ParseWhere(text, fields); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", text, err)
		}
	}
}
