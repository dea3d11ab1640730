package author_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/session"
	"lockkeeper/store"
)

// shows: LM-13 LM-17 LM-20 CF-5 GP-40 GP-41
func TestClaimIsAllOrNothing(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	two, _ := s.instance("CLI-2")
	if _, err := os.Stat(filepath.Dir(s.path())); err == nil {
		t.Error("the file was created before the first claim")
	}
	a := s.claim(one, "Chapter_03", "StyleSystem")
	if !slices.Equal(a.Names, []string{"Chapter_03", "StyleSystem"}) || !s.hasEntry("Chapter_03", "CLI-1") || !s.hasEntry("StyleSystem", "CLI-1") {
		t.Errorf("claimed %v, and the file has %v", a.Names, s.file())
	}
	got := s.blocked(two, "Chapter_04", "Chapter_03")
	if len(got) != 1 || got[0].Resource != "Chapter_03" || got[0].Instance != "CLI-1" || got[0].State != author.Working {
		t.Errorf("conflicts: %+v", got)
	}
	if s.hasEntry("Chapter_04", "CLI-2") {
		t.Error("a part was claimed")
	}
	if a := s.claim(one, "Chapter_03"); a.Grant != nil || !slices.Equal(a.Already, []string{"Chapter_03"}) {
		t.Errorf("claimed again: %+v", a)
	}
	s.claim(two, "Chapter_07")

	done, err := s.Unclaim(t.Context(), one, []string{"Chapter_03", "Chapter_07", "Chapter_08"})
	must(t, err)
	if !slices.Equal(done.Freed, []string{"Chapter_03"}) || len(done.Others) != 1 || done.Others[0].Instance != "CLI-2" || !slices.Equal(done.Unclaimed, []string{"Chapter_08"}) {
		t.Errorf("released: %+v", done)
	}
	s.claim(two, "Chapter_03")
	if s.blocked(two, "StyleSystem")[0].Instance != "CLI-1" {
		t.Error("the rest of the claim was released with the part")
	}
	done, err = s.Unclaim(t.Context(), one, nil)
	must(t, err)
	if !slices.Equal(done.Freed, []string{"StyleSystem"}) {
		t.Errorf("released: %+v", done)
	}
}

// shows: CF-2 LM-11
func TestOverlapDecidesAndNotTheName(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	two, _ := s.instance("CLI-2")
	s.claim(one, "ImageRegistry")
	if got := s.blocked(two, "Chapter_09"); got[0].Resource != "Chapter_09" || !slices.Equal(got[0].Resources, []string{"ImageRegistry"}) {
		t.Errorf("conflicts: %+v", got)
	}
	must(t, os.MkdirAll(filepath.Join(s.root, "Manuscript/Chapters/Chapter_03"), 0o755))
	s.claim(one, "Manuscript/Chapters/Chapter_03/section.md")
	if !s.hasEntry("Chapter_03", "CLI-1") {
		t.Errorf("a file of a chapter is not shown as the chapter: %v", s.file())
	}
	_, err := s.Claim(t.Context(), s.want(two, "Chaptr_03"))
	if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("a mistyped name: %v", err)
	}
}

// shows: LM-57
func TestReadersShare(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	two, _ := s.instance("CLI-2")
	for _, by := range []author.Instance{one, two} {
		w := s.want(by, "Chapter_03")
		w.Mode = lockkeeper.Read
		if a, err := s.Claim(t.Context(), w); err != nil || len(a.Conflicts) > 0 {
			t.Errorf("%v, %v", a, err)
		}
	}
	if got := s.blocked(one, "Chapter_03"); got[0].Instance != "CLI-2" && got[len(got)-1].Instance != "CLI-2" {
		t.Errorf("conflicts of the writer: %+v", got)
	}
}

// shows: LM-3 LM-56 CF-43 CF-46
func TestStates(t *testing.T) {
	s := newStudy(t, "policies:\n  author:\n    ttl: 1s\n    heartbeat: 500ms\n")
	one, end := s.instance("CLI-1")
	// working checks the state right after activity, unless a second has passed.
	working := func(what string, claimed time.Time) {
		t.Helper()
		if got := s.listed()["Chapter_01"].State; got != author.Working && time.Since(claimed) < time.Second {
			t.Errorf("%s it is %s", what, got)
		}
	}
	claimed := time.Now()
	s.claim(one, "Chapter_01")
	working("just claimed", claimed)
	for s.listed()["Chapter_01"].State != author.Idle { // a second has passed
		time.Sleep(50 * time.Millisecond)
	}
	if got := s.listed()["Chapter_01"]; !got.Stale || got.MayOverride() {
		t.Errorf("after a second: %+v", got)
	}
	listed := time.Now()
	s.listed() // renews an entry that foreign tools would treat as abandoned
	if at, _ := s.file()[0].Time(); at.Before(listed.Add(-3 * time.Second)) {
		t.Errorf("foreign tools would treat it as abandoned: %v", s.file())
	}
	claimed = time.Now()
	s.claim(one, "Chapter_01")
	working("after activity", claimed)
	end()
	if got := s.listed()["Chapter_01"]; got.State != author.Gone || !got.MayOverride() {
		t.Errorf("without its process: %+v", got)
	}
}

// A claim is stale at exactly the time to live of its policy, and not before.
//
// shows: CF-43
func TestStaleAtExactly15Minutes(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	s.claim(one, "Chapter_01")
	list, err := s.app.Locks.Requests(t.Context())
	must(t, err)
	at := list[0].HeartbeatAt.Add(15 * time.Minute)
	if author.StatusOf(s.app, list[0], at.Add(-1)).Stale || !author.StatusOf(s.app, list[0], at).Stale {
		t.Errorf("it is not stale from %s on", at)
	}
}

// A person's claim does not expire.
//
// shows: LM-40 LM-46
func TestPersonsClaimStays(t *testing.T) {
	s := newStudy(t, "policies:\n  author:\n    ttl: 1s\n    heartbeat: 500ms\n")
	writer := s.person("CLI-1")
	a := s.claim(writer, "Chapter_01")
	if a.Grant.Policy != "person" || !a.Grant.ExpiresAt.IsZero() {
		t.Errorf("claimed as %+v", a.Grant.Grant)
	}
	for !s.listed()["Chapter_01"].Stale {
		time.Sleep(50 * time.Millisecond)
	}
	if got := s.listed()["Chapter_01"]; got.State != author.Idle || got.Who != "ada on pts/1" {
		t.Errorf("after a second: %+v", got)
	}
}

// While its command runs, a claim is working.
//
// shows: LM-46
func TestClaimWithACommandIsWorking(t *testing.T) {
	s := newStudy(t, "policies:\n  author:\n    ttl: 1s\n    heartbeat: 500ms\n")
	person := s.person("CLI-1")
	worker, end := s.instance("worker")
	w := s.want(person, "Chapter_01")
	w.Worker = worker.Process
	a, err := s.Claim(t.Context(), w)
	must(t, err)
	s.claim(person, "Chapter_02") // no command runs under this one
	for !s.listed()["Chapter_02"].Stale {
		time.Sleep(50 * time.Millisecond)
	}
	if got := s.listed()["Chapter_01"]; got.State != author.Working || got.Stale {
		t.Errorf("while its command runs it is %s, stale: %v", got.State, got.Stale)
	}
	end()
	if got := s.listed()["Chapter_01"]; got.State != author.Gone {
		t.Errorf("without its command it is %s", got.State)
	}
	must(t, a.Grant.Release(t.Context()))
}

// shows: LM-55
func TestThoseGoneForAnHourAreCleanedUp(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	s.foreign(entry("Chapter_01", "CLI-9", 2*time.Hour), entry("Chapter_02", "CLI-8", 20*time.Minute))
	a := s.claim(one, "Chapter_03")
	if len(a.Cleaned) != 1 || a.Cleaned[0].Instance != "CLI-9" || s.hasEntry("Chapter_01", "CLI-9") || !s.hasEntry("Chapter_02", "CLI-8") {
		t.Errorf("cleaned up %+v, and the file has %v", a.Cleaned, s.file())
	}
	if got := s.blocked(one, "Chapter_02"); !got[0].Stale || !got[0].Foreign || got[0].State != author.Gone || got[0].Minutes != 20 {
		t.Errorf("conflicts: %+v", got)
	}
	s.claim(one, "Chapter_01")
}

// shows: LM-17 LM-46 CF-14 CF-16 CF-40
func TestOverride(t *testing.T) {
	s := newStudy(t, "")
	var err error // the words of a person are counted however they have configured git
	s.Author, err = author.Open(s.app, append(s.env, gittest.HostileEnv(t)...))
	must(t, err)
	gittest.Run(t, s.root, "init", "-q")
	chapter := filepath.Join(s.root, "Manuscript/Chapters/Chapter_05/Chapter_05.md")
	must(t, os.MkdirAll(filepath.Dir(chapter), 0o755), os.WriteFile(chapter, []byte("It was a dark night.\n"), 0o644))
	gittest.Run(t, s.root, "add", "Manuscript")
	gittest.Run(t, s.root, "commit", "-qm", "one")
	one, _ := s.instance("CLI-1")
	other, _ := s.instance("CLI-2")
	first := s.claim(one, "Chapter_05")
	must(t, os.WriteFile(chapter, []byte("It was a dark and stormy night.\n"), 0o644), os.WriteFile(chapter+".new", []byte("four words of mine\n"), 0o644))

	w := s.want(other, "Chapter_05")
	w.Override = []string{first.Grant.ID}
	_, err = s.Claim(t.Context(), w)
	var refused *lockkeeper.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("an agent may override: %v", err)
	}
	writer := s.person("CLI-3")
	c := s.blocked(writer, "Chapter_05")[0]
	words, err := s.Uncommitted(t.Context(), c.GrantStatus)
	must(t, err)
	if len(words) != 2 || words[0].Added != 2 || words[0].Removed != 0 || words[1].Added != 4 || !strings.Contains(words[0].Begins[0], "stormy") {
		t.Errorf("not committed: %+v", words)
	}
	w = s.want(writer, "Chapter_05")
	w.Override = []string{first.Grant.ID}
	a, err := s.Claim(t.Context(), w)
	must(t, err)
	if a.Grant == nil || len(a.Overrode) != 1 || s.hasEntry("Chapter_05", "CLI-1") || !s.hasEntry("Chapter_05", "CLI-3") {
		t.Errorf("%+v; the file has %v", a, s.file())
	}
	kept, err := session.Rescued(t.Context(), s.app)
	must(t, err)
	if len(kept) != 2 || kept[0].Holder != "CLI-1" || !strings.Contains(kept[0].Reason, "not committed") {
		t.Errorf("kept: %+v", kept)
	}

	done, err := s.Unclaim(t.Context(), one, []string{"Chapter_05"}) // late
	must(t, err)
	if len(done.Freed) != 0 || len(done.Others) != 1 || !s.hasEntry("Chapter_05", "CLI-3") {
		t.Errorf("the late release did %+v, and the file has %v", done, s.file())
	}
	events, err := s.app.Locks.Events(t.Context(), store.EventQuery{Limit: 100})
	must(t, err)
	for kind, who := range map[lockkeeper.EventKind]string{lockkeeper.EventRefused: "CLI-2 (claude)", lockkeeper.EventForceReleased: "ada"} {
		if !slices.ContainsFunc(events, func(ev lockkeeper.Event) bool { return ev.Kind == kind && ev.Actor.Name == who }) {
			t.Errorf("%s by %s is not on record", kind, who)
		}
	}
}

// No claim is overridden if another conflict would still block the request.
func TestOverrideIsAllOrNothing(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	two, _ := s.instance("CLI-2")
	first := s.claim(one, "Chapter_01")
	s.claim(two, "Chapter_02")
	w := s.want(s.person("CLI-3"), "Chapter_01", "Chapter_02")
	w.Override = []string{first.Grant.ID}
	a, err := s.Claim(t.Context(), w)
	must(t, err)
	if len(a.Conflicts) != 2 || s.listed()["Chapter_01"].Instance != "CLI-1" {
		t.Errorf("%+v", a)
	}
}

// shows: LM-22 LM-23 LM-47
func TestClear(t *testing.T) {
	s := newStudy(t, "")
	one, end := s.instance("CLI-1")
	two, _ := s.instance("CLI-2")
	s.claim(one, "Chapter_01")
	end()
	s.claim(two, "Chapter_02")
	s.foreign(append(s.file(), entry("Chapter_03", "CLI-9", time.Minute), entry("Chapter_02", "CLI-8", time.Minute))...)
	list, notes, err := s.Claims(t.Context())
	must(t, err)
	if len(list) != 3 || len(notes) != 1 || notes[0].Kind != author.Collision {
		t.Fatalf("%+v %+v", list, notes)
	}
	gone := slices.DeleteFunc(slices.Clone(list), func(c author.GrantStatus) bool { return c.State != author.Gone })
	done, err := s.Clear(t.Context(), gone, ada, false)
	must(t, err)
	if len(done.Freed) != 1 || done.Freed[0].Instance != "CLI-1" || len(s.file()) != 3 {
		t.Errorf("%+v, and the file has %v", done, s.file())
	}
	done, err = s.Clear(t.Context(), list[1:], ada, true)
	must(t, err)
	if len(done.Freed) != 2 || len(s.file()) != 0 {
		t.Errorf("%+v, and the file has %v", done, s.file())
	}
}

// An agent that uses the ID of a person's session cannot release the person's claims, by
// name or all at once. Claims it makes under that ID are its own.
//
// shows: LM-20 GP-41
func TestAgentGivesBackNothingOfAPerson(t *testing.T) {
	s := newStudy(t, "")
	person := s.person("CLI-1")
	s.claim(person, "Chapter_03")
	agent, _ := s.instance("CLI-1")
	agent.Named = true
	s.claim(agent, "Chapter_04")
	for _, names := range [][]string{{"Chapter_03"}, nil} {
		done, err := s.Unclaim(t.Context(), agent, names)
		must(t, err)
		if slices.Contains(done.Freed, "Chapter_03") || len(done.Others) != 1 || !s.hasEntry("Chapter_03", "CLI-1") {
			t.Errorf("%v: released: %+v", names, done)
		}
	}
	if s.hasEntry("Chapter_04", "CLI-1") {
		t.Error("its own claim was not released")
	}
}

// A claim is not overridden if its uncommitted work cannot be backed up.
//
// shows: LM-53
func TestClearKeepsFirst(t *testing.T) {
	s := newStudy(t, "")
	one, _ := s.instance("CLI-1")
	s.claim(one, "StyleSystem")
	text, shelf := filepath.Join(s.root, "Manuscript/Style/Style_Guide.md"), filepath.Join(s.root, ".lockkeeper", "rescue")
	must(t, os.MkdirAll(filepath.Dir(text), 0o755), os.WriteFile(text, []byte("words"), 0o644), os.RemoveAll(shelf), os.WriteFile(shelf, nil, 0o644))
	list, _, err := s.Claims(t.Context())
	must(t, err)
	done, err := s.Clear(t.Context(), list, ada, true)
	if err == nil || len(done.Freed) != 0 || len(done.Kept) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, held := s.listed()["StyleSystem"]; !held {
		t.Errorf("the claim was released without a backup: %v", err)
	}
}
