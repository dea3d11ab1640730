package lfs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/compat/lfs"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/access"
)

// said is a response of the API.
type said struct {
	status int
	header http.Header
	body   string
	Lock   lfs.Lock   `json:"lock"`
	Locks  []lfs.Lock `json:"locks"`
	Ours   []lfs.Lock `json:"ours"`
	Theirs []lfs.Lock `json:"theirs"`
	Next   string     `json:"next_cursor"`
	Error  string     `json:"message"`
}

// ask sends a request as git-lfs does, with the token as the password.
func (s *scene) ask(client *http.Client, who, method, url, body string, change ...func(*http.Request)) (a said) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	must(s.t, err)
	r.Header.Set("Content-Type", lfs.Media)
	if who != "" {
		r.SetBasicAuth("git", s.tokens[who])
	}
	for _, c := range change {
		c(r)
	}
	got, err := client.Do(r)
	must(s.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must(s.t, err)
	a.status, a.header, a.body = got.StatusCode, got.Header, string(text)
	if err := json.Unmarshal(text, &a); err != nil {
		s.t.Errorf("%s %s: not JSON: %.300s", method, url, text)
	}
	return a
}

// Invalid requests are refused with a message that git-lfs shows.
func TestHostileRequests(t *testing.T) {
	s := newScene(t)
	address, end := s.Serve(t, "127.0.0.1:0")
	defer end()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	must(t, os.Symlink("/etc", filepath.Join(s.Root, "outside")), os.Symlink("art/hero.psd", filepath.Join(s.Root, "alias.psd")))
	at := address + "/lfs/locks"

	stranger := s.ask(client, "", "GET", at, "")
	if stranger.status != http.StatusUnauthorized || !strings.HasPrefix(stranger.header.Get("WWW-Authenticate"), "Basic") || stranger.Error == "" {
		t.Errorf("a stranger: %d %s", stranger.status, stranger.body)
	}
	body := func(path string) string {
		text, err := json.Marshal(map[string]any{"path": path, "ref": map[string]string{"name": "refs/heads/main"}})
		must(t, err)
		return string(text)
	}
	for _, c := range []struct {
		what, who, method, url, body string
		want                         int
		change                       func(*http.Request)
	}{
		{"an unknown password", "stranger", "GET", at, "", http.StatusUnauthorized, nil},
		{"a password for another API", "ann", "GET", address + "/api/v1/me", "", http.StatusUnauthorized, nil},
		{"a path above", "ann", "POST", at, body("../x"), http.StatusBadRequest, nil},
		{"a pattern", "ann", "POST", at, body("art/*"), http.StatusBadRequest, nil},
		{"a path above, inside", "ann", "POST", at, body("art/../../x"), http.StatusBadRequest, nil},
		{"an absolute path", "ann", "POST", at, body("/etc/passwd"), http.StatusBadRequest, nil},
		{"a link to outside", "ann", "POST", at, body("outside/passwd"), http.StatusBadRequest, nil},
		{"a file of git", "ann", "POST", at, body(".git/config"), http.StatusBadRequest, nil},
		{"a file of Lockkeeper", "ann", "POST", at, body(".lockkeeper/state.db"), http.StatusBadRequest, nil},
		{"a directory", "ann", "POST", at, body("art"), http.StatusBadRequest, nil},
		{"no path", "ann", "POST", at, body(""), http.StatusBadRequest, nil},
		{"a path with a zero byte", "ann", "POST", at, body("a\x00b"), http.StatusBadRequest, nil},
		{"a long path", "ann", "POST", at, body(strings.Repeat("x/", 100_000)), http.StatusBadRequest, nil},
		{"a huge body", "ann", "POST", at, body(strings.Repeat("x", 2<<20)), http.StatusRequestEntityTooLarge, nil},
		{"no JSON", "ann", "POST", at, "{", http.StatusUnprocessableEntity, nil},
		{"a form", "ann", "POST", at, body("art/sky.psd"), http.StatusUnsupportedMediaType, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
		{"another origin", "ann", "POST", at, body("art/sky.psd"), http.StatusForbidden, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }},
		{"a viewer who locks", "vic", "POST", at, body("art/sky.psd"), http.StatusForbidden, nil},
		{"an agent that locks", "robot", "POST", at, body("art/sky.psd"), http.StatusForbidden, nil},
		{"a wrong limit", "ann", "GET", at + "?limit=x", "", http.StatusUnprocessableEntity, nil},
		{"an unknown lock", "ann", "POST", at + "/unknown/unlock", "{}", http.StatusNotFound, nil},
		{"objects", "ann", "POST", address + "/lfs/objects/batch", "{}", http.StatusNotImplemented, nil},
	} {
		if c.change == nil {
			c.change = func(*http.Request) {}
		}
		if a := s.ask(client, c.who, c.method, c.url, c.body, c.change); a.status != c.want || strings.Contains(c.url, "/lfs/") && a.Error == "" {
			t.Errorf("%s: %d %.300s, want %d", c.what, a.status, a.body, c.want)
		}
	}
	grants, err := s.App.Locks.ActiveGrants(t.Context())
	must(t, err)
	if len(grants) > 0 {
		t.Errorf("locks were acquired: %+v", grants)
	}

	// A file has one lock, by whatever path. A forced unlock of one file does not release a
	// whole grant.
	first := s.ask(client, "ann", "POST", at, body("alias.psd"))
	if first.status != http.StatusCreated || first.Lock.Path != "art/hero.psd" || first.Lock.Owner.Name != "ann" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	for _, name := range []string{"alias.psd", "art/hero.psd"} { // git lfs unlock looks up the lock like this
		if a := s.ask(client, "ann", "GET", at+"?path="+name, ""); len(a.Locks) != 1 || a.Locks[0].ID != first.Lock.ID {
			t.Errorf("found by %s: %d %s", name, a.status, a.body)
		}
	}
	for _, name := range []string{"art", "../x", ".git/config"} {
		if a := s.ask(client, "ann", "GET", at+"?path="+name, ""); a.status != http.StatusOK || len(a.Locks) > 0 {
			t.Errorf("found by %s: %d %s", name, a.status, a.body)
		}
	}
	if a := s.ask(client, "bob", "POST", at, body("art/hero.psd")); a.status != http.StatusConflict || a.Lock.ID != first.Lock.ID || a.Lock.Owner.Name != "ann" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for who, want := range map[string]int{"bob": http.StatusForbidden, "robot": http.StatusForbidden} {
		if a := s.ask(client, who, "POST", at+"/"+first.Lock.ID+"/unlock", `{"force":true}`); a.status != want {
			t.Errorf("%s by force: %d %s", who, a.status, a.body)
		}
	}
	var locks []lockkeeper.Lock
	for i := range 250 {
		locks = append(locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: fmt.Sprintf("art/%03d.psd", i), Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	g, err := s.App.Acquire(t.Context(), lockkeeper.Request{Holder: "otter", Locks: locks}, 0)
	must(t, err)
	if a := s.ask(client, "root", "POST", at+"/"+g.ID+".7/unlock", `{"force":true}`); a.status != http.StatusConflict || !strings.Contains(a.Error, "250 files") {
		t.Errorf("a part of a grant by force: %d %s", a.status, a.body)
	}
	s.pages(client, at, 251)
	if a := s.ask(client, "ann", "POST", at+"/"+first.Lock.ID+"/unlock", `{}`); a.status != http.StatusOK || a.Lock.ID != first.Lock.ID {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// pages reads all locks in pages of several sizes and checks that each occurs once.
func (s *scene) pages(client *http.Client, at string, want int) {
	s.t.Helper()
	for _, limit := range []int{0, 1, 60, 5_000} {
		listed, ours, theirs := map[string]bool{}, 0, 0
		for cursor := ""; ; {
			a := s.ask(client, "ann", "GET", fmt.Sprintf("%s?limit=%d&cursor=%s", at, limit, cursor), "")
			v := s.ask(client, "ann", "POST", at+"/verify", fmt.Sprintf(`{"limit":%d,"cursor":%q}`, limit, cursor))
			if a.status != http.StatusOK || v.status != http.StatusOK || a.Next != v.Next {
				s.t.Fatalf("%d %.300s / %d %.300s", a.status, a.body, v.status, v.body)
			}
			for _, l := range a.Locks {
				listed[l.ID+" "+l.Path] = true
			}
			ours, theirs = ours+len(v.Ours), theirs+len(v.Theirs)
			if cursor = a.Next; cursor == "" {
				break
			}
		}
		if len(listed) != want || ours != 1 || theirs != want-1 {
			s.t.Errorf("in pages of %d: %d locks, %d ours and %d theirs", limit, len(listed), ours, theirs)
		}
	}
}

// A person whose name equals the random callsign of an agent does not own the agent's locks
// and cannot push over them.
func TestNamedLikeACallsign(t *testing.T) {
	s := newScene(t)
	address, end := s.Serve(t, "127.0.0.1:0")
	defer end()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	sess, err := session.Open(s.App).Enter(t.Context(), session.Caller{ID: "s1", Agent: "claude-code"})
	must(t, err)
	said, err := sess.Claim(t.Context(), session.Write{Path: "art/tree.psd"})
	must(t, err, sess.Close())
	if len(said) > 0 {
		t.Fatalf("refused: %v", said)
	}
	name := sess.Info().Callsign
	s.tokens[name] = s.Token(t, name, access.Operator)
	a := s.ask(client, name, "POST", address+"/lfs/locks/verify", "{}")
	if len(a.Ours) > 0 || len(a.Theirs) != 1 || a.Theirs[0].Path != "art/tree.psd" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
