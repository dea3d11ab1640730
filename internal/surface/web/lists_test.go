package web

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/view"
	"lockkeeper/lock"
)

// shows checks that a page has and lacks texts.
func shows(t *testing.T, s *scene, address string, has, lacks []string) string {
	t.Helper()
	page := get(t, shown(t, s), access.Admin, address).Body.String()
	for _, text := range has {
		if !strings.Contains(page, text) {
			t.Errorf("%s has no %q", address, text)
		}
	}
	for _, text := range lacks {
		if strings.Contains(page, text) {
			t.Errorf("%s has %q", address, text)
		}
	}
	return page
}

// The page of locks leaves out grants with nothing but internal locks, and counts internal locks of others.
func TestInternalLocksAreHidden(t *testing.T) {
	s := empty()
	grant := func(id string, locks ...view.PathLock) view.LockStatus {
		g := view.LockStatus{Holding: view.Holding{RequestInfo: lock.RequestInfo{GrantSnapshot: lockkeeper.GrantSnapshot{ID: id, Holder: id}, State: "held"}}, Name: "holder of " + id, Locks: locks, Internal: true}
		for _, l := range locks {
			g.Internal = g.Internal && l.Internal
		}
		return g
	}
	file, document := view.PathLock{Path: "app/a.rb", Mode: lockkeeper.Write}, view.PathLock{Path: ".pipeline/a/analysis.json", Mode: lockkeeper.Read, Internal: true}
	s.locks.Held = []view.LockStatus{grant("g1", file, document), grant("g2", document)}
	s.locks.Waiting = []view.LockStatus{grant("g3", document)}
	shows(t, s, "/locks", []string{"holder of g1", "app/<wbr>a.rb", "and 1 internal lock", "2 grants of documents", "internal=1"}, []string{"holder of g2", "holder of g3", "analysis.json"})
	shows(t, s, "/locks?internal=1", []string{"holder of g1", "holder of g2", "holder of g3", "analysis.json", "Hide internal locks"}, nil)
	s.locks.Held[1].Stale = true
	s.locks.Stale = s.locks.Held[1:]
	shows(t, s, "/locks", []string{"holder of g2", "(STALE)"}, nil)
}

// Long lists have pages, of which each row has its own id.
func TestLongListsHavePages(t *testing.T) {
	s := empty()
	for i := range 250 {
		id := fmt.Sprintf("g%d", i)
		s.locks.Held = append(s.locks.Held, view.LockStatus{Holding: view.Holding{RequestInfo: lock.RequestInfo{GrantSnapshot: lockkeeper.GrantSnapshot{ID: id, Holder: id}, State: "held"}}, Name: id})
	}
	first := shows(t, s, "/locks", []string{"1 to 100 of 250", "page=2", `id="g-g99"`, "Held (250)"}, []string{`id="g-g100"`, "page=1"})
	shows(t, s, "/locks?internal=1&page=3", []string{"201 to 250 of 250", "internal=1&amp;page=2", `id="g-g249"`}, []string{"page=4"})
	shows(t, s, "/locks?page=99", []string{"201 to 250 of 250"}, nil)
	if strings.Count(first, `id="g-`) != 100 {
		t.Error("the page has not 100 rows")
	}
	list, p, err := paged([]int{}, httptest.NewRequest("GET", "/x", nil), "page")
	if len(list) != 0 || p != (pager{}) || err != nil {
		t.Errorf("%v %+v %v", list, p, err)
	}
	if _, _, err := paged(list, httptest.NewRequest("GET", "/x?page=-1", nil), "page"); err == nil {
		t.Error("a negative page is accepted")
	}
}

// The list of work says what each item waits for, and for how long.
func TestWorkSaysWhatItWaitsFor(t *testing.T) {
	shows(t, middle(usual), "/items?q=x&unit=admin/posts&phase=apply", []string{
		"held by <a href=\"/item/sessions/b1?", ">sessions/<wbr>b1</a>", "a slot of agent, 8 of 8 taken", "and 1 more", "a decision: <a href=\"/item/admin/posts/b1?", ">retry it or leave it</a>", "20m 00s", "6m 00s",
		`id="j9"`, `value="admin/posts"`, `<option value="apply" selected>`, "after=12&amp;phase=apply"}, nil)
}

func TestRowIDs(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"admin/users/b1", "admin/users b1", "admin_users", "admin_5f_users", "a-b", "über", "<b>"} {
		id := rowID("w", name)
		if strings.ContainsAny(id, " <>\"'") || seen[id] != "" {
			t.Errorf("%q has the id %q, and so has %q", name, id, seen[id])
		}
		seen[id] = name
	}
}
