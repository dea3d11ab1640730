package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/surface/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func book(t *testing.T) (*access.Accounts, string) {
	dir := filepath.Join(t.TempDir(), "access", "space")
	return access.Open(dir), dir
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func TestRoles(t *testing.T) {
	all := []access.Role{access.Viewer, access.Operator, access.Admin, access.Agent}
	for need, may := range map[access.Need]string{
		{AtLeast: access.Viewer}:                 "viewer operator admin",
		{AtLeast: access.Viewer, Agents: true}:   "viewer operator admin agent",
		{AtLeast: access.Operator}:               "operator admin",
		{AtLeast: access.Operator, Agents: true}: "operator admin agent",
		{AtLeast: access.Admin}:                  "admin",
	} {
		var got []string
		for _, r := range all {
			if r.Meets(need) {
				got = append(got, string(r))
			}
		}
		if strings.Join(got, " ") != may {
			t.Errorf("%s: %s", need, got)
		}
	}
	if access.Role("").Meets(access.Need{AtLeast: access.Viewer}) || access.Role("root").Meets(access.Need{AtLeast: access.Viewer}) {
		t.Error("a person without a role may read")
	}
	for _, wrong := range []string{"", "Admin", "root"} {
		if _, err := access.ParseRole(wrong); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for role, kind := range map[access.Role]lockkeeper.ActorKind{access.Viewer: "person", access.Operator: "person", access.Admin: "admin", access.Agent: "agent"} {
		if a := (access.Person{Name: "x", Role: role}).Actor(); a.Kind != kind || a.Name != "x" {
			t.Errorf("%s is %+v", role, a)
		}
	}
}

// A token has the role of its account until the account is removed. The token itself is not stored.
func TestTokens(t *testing.T) {
	b, dir := book(t)
	if list, err := b.List(); err != nil || len(list) != 0 {
		t.Fatalf("a new book: %v %v", list, err)
	}
	token, err := b.Add(t.Context(), "ci", access.Agent)
	must(t, err)
	other, err := b.Add(t.Context(), "alice", access.Operator)
	must(t, err)
	if token == other || len(token) < 40 {
		t.Errorf("weak: %q %q", token, other)
	}
	who, known, err := b.ByToken(token)
	must(t, err)
	if !known || who.Name != "ci" || who.Role != access.Agent {
		t.Errorf("%+v %v", who, known)
	}
	for _, wrong := range []string{"", "lk_", "lk_x", token[:len(token)-1], token + "x", strings.ToUpper(token), "../../people/" + token, "lk_" + strings.Repeat("x", 1<<16)} {
		if _, known, err := b.ByToken(wrong); known || err != nil {
			t.Errorf("%.20q: %v %v", wrong, known, err)
		}
	}
	list, err := b.List()
	must(t, err)
	if len(list) != 2 || list[0].Name != "alice" || !list[1].HasToken {
		t.Errorf("%+v", list)
	}
	if _, err := b.Add(t.Context(), "ci", access.Viewer); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("a second ci: %v", err)
	}
	for _, name := range []string{"", "a b", "../x", "-x", "x/y", strings.Repeat("x", 41), "é"} {
		if _, err := b.Add(t.Context(), name, access.Viewer); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%q: %v", name, err)
		}
	}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %s", path, info.Mode())
			}
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), token) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has a secret, or the mode %s", path, info.Mode())
		}
		return err
	}))
	must(t, b.Revoke("ci"))
	if _, known, err := b.ByToken(token); known || err != nil {
		t.Errorf("removed: %v %v", known, err)
	}
	if err := b.Revoke("ci"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("removed twice: %v", err)
	}
}

// A ticket logs in once, even if several clients use it concurrently, and expires soon.
func TestTickets(t *testing.T) {
	b, dir := book(t)
	owner, err := b.Member(t.Context(), "alice", access.Admin)
	must(t, err)
	again, err := b.Member(t.Context(), "alice", access.Viewer)
	must(t, err)
	if again != owner || owner.Role != access.Admin {
		t.Errorf("%+v, then %+v", owner, again)
	}
	ticket, err := b.Ticket(t.Context(), owner, noon)
	must(t, err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 16 {
		wg.Go(func() {
			who, known, err := b.Redeem(ticket, noon)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if known {
				won++
				if who != owner {
					t.Errorf("%+v", who)
				}
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("it logged in %d times", won)
	}
	late, err := b.Ticket(t.Context(), owner, noon)
	must(t, err)
	if _, known, err := b.Redeem(late, noon.Add(access.TicketLife)); known || err != nil {
		t.Errorf("late: %v %v", known, err)
	}
	if _, err := b.Ticket(t.Context(), owner, noon); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"", "x", "../key", late} {
		if _, known, err := b.Redeem(wrong, noon); known || err != nil {
			t.Errorf("%q: %v %v", wrong, known, err)
		}
	}
	ended, err := b.Ticket(t.Context(), owner, noon.Add(time.Hour)) // also removes expired tickets
	must(t, err)
	files, err := os.ReadDir(filepath.Join(dir, "tickets"))
	must(t, err)
	if len(files) != 1 {
		t.Errorf("%d tickets are kept", len(files))
	}
	must(t, b.Revoke("alice"))
	if _, known, err := b.Redeem(ended, noon.Add(time.Hour)); known || err != nil {
		t.Errorf("a ticket of a person who was removed: %v %v", known, err)
	}
}

// A session survives a restart. It ends when it expires, when its account is removed, and at logout.
func TestSessions(t *testing.T) {
	b, dir := book(t)
	_, err := b.Add(t.Context(), "alice", access.Operator)
	must(t, err)
	alice, err := b.Member(t.Context(), "alice", access.Viewer)
	must(t, err)
	start := func() string {
		t.Helper()
		cookie, err := b.StartSession(t.Context(), alice, noon, noon.Add(time.Hour))
		must(t, err)
		return cookie
	}
	known := func(cookie string, now time.Time) bool {
		t.Helper()
		who, known, err := access.Open(dir).BySession(cookie, now) // as in another process, or after a restart
		must(t, err)
		if known && (who != alice || who.Role != access.Operator) {
			t.Errorf("%+v", who)
		}
		return known
	}
	cookie, other := start(), start()
	if cookie == other || !known(cookie, noon) || !known(other, noon) {
		t.Fatal("two sessions do not hold")
	}
	for i := range len(cookie) {
		changed := []byte(cookie)
		changed[i] ^= 1
		if known(string(changed), noon) {
			t.Fatalf("changed at %d it is still one", i)
		}
	}
	for _, wrong := range []string{"", ".", "..", "../people/x", strings.Repeat("x", 10_000), cookie[:len(cookie)-1]} {
		if known(wrong, noon) {
			t.Errorf("%.20q is a session", wrong)
		}
	}
	if known(cookie, noon.Add(time.Hour)) {
		t.Error("it did not end in time")
	}
	must(t, b.EndSession(cookie), b.EndSession(cookie))
	if known(cookie, noon) || !known(other, noon) {
		t.Error("a logout ended none, or another one")
	}
	if _, ok, _ := b.Redeem(other, noon); ok {
		t.Error("a session is a ticket, too")
	}
	must(t, b.Revoke("alice"))
	if known(other, noon) {
		t.Error("it did not end with its name")
	}
	_, err = b.Add(t.Context(), "alice", access.Admin)
	must(t, err)
	if known(other, noon) {
		t.Error("the session of the old name is good for the new one")
	}
	again, err := b.Member(t.Context(), "alice", access.Viewer)
	must(t, err)
	if again.ID() == alice.ID() {
		t.Error("the new one is the old one")
	}
}

// A person keeps a bounded number of sessions, and a damaged session file blocks no login.
func TestSessionsAreBounded(t *testing.T) {
	b, dir := book(t)
	ann, err := b.Member(t.Context(), "ann", access.Admin)
	must(t, err)
	bob, err := b.Member(t.Context(), "bob", access.Viewer)
	must(t, err)
	kept := func() int {
		t.Helper()
		files, err := os.ReadDir(filepath.Join(dir, "sessions"))
		must(t, err)
		return len(files)
	}
	own, err := b.StartSession(t.Context(), bob, noon, noon.Add(time.Minute))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "sessions", "x.json"), []byte("{"), 0o600))
	last := ""
	for i := range 120 {
		last, err = b.StartSession(t.Context(), ann, noon, noon.Add(time.Hour+time.Duration(i)*time.Second))
		must(t, err)
	}
	if n := kept(); n != 101 {
		t.Errorf("%d sessions are kept", n)
	}
	for _, session := range []string{own, last} {
		if _, known, err := b.BySession(session, noon); !known || err != nil {
			t.Errorf("it ended because of another's: %v", err)
		}
	}
	must(t, b.Revoke("ann"))
	_, err = b.StartSession(t.Context(), bob, noon.Add(2*time.Minute), noon.Add(time.Hour))
	must(t, err)
	if n := kept(); n != 1 {
		t.Errorf("%d sessions are kept", n)
	}
}

// A reader of the directory finds no secret that logs in.
func TestNothingToSteal(t *testing.T) {
	b, dir := book(t)
	must(t, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "key"), make([]byte, 32), 0o600)) // left by an earlier version
	must(t, b.RemoveKey(), b.RemoveKey())
	ann, err := b.Member(t.Context(), "ann", access.Admin)
	must(t, err)
	_, err = b.Add(t.Context(), "bob", access.Admin)
	must(t, err)
	_, err = b.Ticket(t.Context(), ann, noon)
	must(t, err)
	_, err = b.StartSession(t.Context(), ann, noon, noon.Add(time.Hour))
	must(t, err)
	var seen []string
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name := strings.TrimSuffix(d.Name(), ".json")
		seen = append(append(seen, name, "lk_"+name, string(text)), strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune("\" {},:\n", r) })...)
		return err
	}))
	if len(seen) < 16 {
		t.Fatalf("%q", seen)
	}
	for _, text := range seen {
		_, byToken, err1 := b.ByToken(text)
		_, bySession, err2 := b.BySession(text, noon)
		_, byTicket, err3 := b.Redeem(text, noon)
		if must(t, err1, err2, err3); byToken || bySession || byTicket {
			t.Errorf("%q is accepted as a login", text)
		}
	}
}
