package web

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow/run"
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

// The board shows some units, and finds units by name, status and phase.
func TestBoardOfManyUnits(t *testing.T) {
	s := middle(usual)
	row := s.board.Units[0]
	s.board.Units = nil
	for i := range 300 {
		u := row
		u.Name, u.Phase = fmt.Sprintf("admin/unit%03d", i), []string{"analyze", "apply"}[i%2]
		for n := range 20 {
			u.Batches = append(u.Batches, view.BoardBatch{BatchState: run.BatchState{ID: fmt.Sprintf("b%d", n), WorkState: run.WorkState{Status: "applying"}}})
		}
		s.board.Units = append(s.board.Units, u)
	}
	page := shows(t, s, "/board", []string{`id="u-admin/unit000"`, "1 to 50 of 300", "and 12 more", `<option value="apply">`}, []string{"unit050"})
	if len(page) > 150_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	shows(t, s, "/board?phase=apply&q=UNIT29", []string{"unit291", "unit299"}, []string{"unit290", "unit298", " of 300"})
	shows(t, s, "/board?page=6&status=awaiting_decisions", []string{"251 to 300 of 300", "page=5&amp;status=awaiting_decisions"}, []string{"page=7"})
}

// The page of a run begins with its cost and outcome. Its lists have pages, and each landing leads to its diff.
func TestRunOfManyLandings(t *testing.T) {
	s := middle(usual)
	landing, failure, unit := s.run.Landings[0], s.run.Report.Failures[0], s.run.Report.Units[0]
	s.run.Landings, s.run.Report.Failures, s.run.Report.Units, s.run.More = nil, nil, nil, true
	for i := range 300 {
		landing.Seq, failure.Item, unit.Name = uint64(9000-i), fmt.Sprintf("j%d", i), fmt.Sprintf("unit%03d", i)
		s.run.Report.Failures, s.run.Report.Units = append(s.run.Report.Failures, failure), append(s.run.Report.Units, unit)
		if i < 50 {
			s.run.Landings = append(s.run.Landings, landing)
		}
	}
	page := shows(t, s, "/run", []string{`href="/landing/9000">Diff`, `id="landing-8976"`, "/run?landings=8976", "Failed (300)", "failures=2", "unit024", "units=2"}, []string{`id="landing-8975"`, "unit025", "Latest landings"})
	order := []string{"Cost of this run", "Complete", `id="landings"`, `id="failures"`, `id="refused"`, `id="units"`}
	for i, text := range order[1:] {
		if strings.Index(page, order[i]) > strings.Index(page, text) {
			t.Errorf("%s is before %s", text, order[i])
		}
	}
	if len(page) > 150_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	shows(t, s, "/run?landings=8976&units=12", []string{"Latest landings", "unit299", "units=11"}, []string{"units=13"})
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
