package view_test

import (
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
)

// Claims are shown with their original names and their states.
//
// shows: LM-43
func TestClaimsByName(t *testing.T) {
	s := newScene(t, "resources:\n  Chapter_{nn}:\n    files:\n      - Manuscript/Chapter_{nn}/\n      - Manuscript/Chapter_{nn}.md\n")
	au, err := author.Open(s.app, nil)
	must(t, err)
	by, err := author.InstanceOf(nil, "", "CLI-12345", ada)
	must(t, err)
	a, err := au.Claim(t.Context(), author.Request{By: by, Names: []string{"Chapter_03", "notes.md"}, Mode: lockkeeper.Write})
	must(t, err)
	v, err := s.look.Locks(t.Context())
	must(t, err)
	if len(v.Resources) != 2 {
		t.Fatalf("the resources are %+v", v.Resources)
	}
	for i, name := range []string{"Chapter_03", "notes.md"} {
		r := v.Resources[i]
		if r.Resource != name || r.Instance != "CLI-12345" || r.State != "working" || r.Stale || r.Minutes != 0 || r.GrantID != a.Grant.ID || r.Mode != "write" {
			t.Errorf("%s is shown as %+v", name, r)
		}
	}
}
