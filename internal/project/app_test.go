package project_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lockkeeper"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/project"
)

func TestMain(m *testing.M) {
	gittest.Alone()
	goleak.VerifyTestMain(m)
}

func settings(t *testing.T) project.Settings {
	t.Helper()
	state := t.TempDir()
	return project.Settings{Dir: t.TempDir(), Env: func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }}
}

// lockable returns the settings of a root that init has created.
func lockable(t *testing.T) project.Settings {
	t.Helper()
	s := settings(t)
	if _, err := project.Init(t.Context(), s, project.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, s project.Settings) *project.Project {
	t.Helper()
	a, err := project.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// Concurrent inits make one world, and each reports its space.
func TestInitsAtOnceMakeOneWorld(t *testing.T) {
	s := settings(t)
	const n = 8
	var all sync.WaitGroup
	results, errs := make([]*project.InitResult, n), make([]error, n)
	for i := range n {
		all.Go(func() { results[i], errs[i] = project.Init(context.Background(), s, project.InitOptions{}) })
	}
	all.Wait()
	a := open(t, s)
	made := 0
	for i := range n {
		if errs[i] != nil {
			// An init may also be refused because another one is running.
			if lockkeeper.CodeOf(errs[i]) != lockkeeper.CodeRefused {
				t.Errorf("init: %v", errs[i])
			}
			continue
		}
		if results[i].Space != a.Space {
			t.Errorf("an init made space %s beside %s", results[i].Space, a.Space)
		}
		if !results[i].Already {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d inits made a world", made)
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "init-") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

// While a process of the user has the store open, no new world is made, whatever the options and
// the person's answers are.
func TestNoSecondWorldWhileTheFirstIsUsed(t *testing.T) {
	s := lockable(t)
	a, err := project.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir, ".lockkeeper")); err != nil {
		t.Fatal(err)
	}
	agree := project.InitOptions{NewWorld: true, Confirm: func(string, string) error { return nil }}
	if _, err := project.Init(t.Context(), s, agree); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Fatalf("a second world beside a used one: %v", err)
	}
	a.Close()
	if _, err := project.Init(t.Context(), s, agree); err != nil {
		t.Fatalf("after the last user has ended: %v", err)
	}
	open(t, s)
}

// A grant whose token cannot be stored is released, because no process could release it later.
func TestUnkeepableTokenGivesTheGrantBack(t *testing.T) {
	s := lockable(t)
	a := open(t, s)
	state, _ := s.Env("XDG_STATE_HOME")
	if err := os.WriteFile(filepath.Join(state, "lockkeeper", "tokens"), nil, 0o600); err != nil { // blocks the directory
		t.Fatal(err)
	}
	l, err := a.Resolve(lockkeeper.Write, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Acquire(t.Context(), lockkeeper.Request{Holder: "otter", Locks: []lockkeeper.Lock{l}}, 0); err == nil {
		t.Fatal("a grant without a kept token")
	}
	if held, err := a.Locks.ActiveGrants(t.Context()); err != nil || len(held) != 0 {
		t.Errorf("still held: %v %v", held, err)
	}
}

// A text that is not a grant id never becomes a file name.
func TestTokensRefuseWhatIsNoID(t *testing.T) {
	s := lockable(t)
	a := open(t, s)
	for _, id := range []string{"", "..", "../../../../etc/passwd", strings.Repeat("a", 36), "1B4E28BA-2FA1-41D2-883F-0016D3CCA427", "1b4e28ba-2fa1-41d2-883f-0016d3cca42/"} {
		if err := a.Tokens.Put(t.Context(), id, "x"); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("Put %q: %v", id, err)
		}
		if _, err := a.Tokens.Get(id); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("Get %q: %v", id, err)
		}
		if err := a.Tokens.Drop(id); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("Drop %q: %v", id, err)
		}
	}
}

// Sweep removes the tokens of ended grants. Tokens of live grants and new tokens stay.
func TestSweepForgetsEndedGrants(t *testing.T) {
	s := lockable(t)
	a := open(t, s)
	const ended, live, fresh = "1b4e28ba-2fa1-41d2-883f-0016d3cca421", "1b4e28ba-2fa1-41d2-883f-0016d3cca422", "1b4e28ba-2fa1-41d2-883f-0016d3cca423"
	state, _ := s.Env("XDG_STATE_HOME")
	for _, id := range []string{ended, live, fresh} {
		if err := a.Tokens.Put(t.Context(), id, "secret"); err != nil {
			t.Fatal(err)
		}
		if id != fresh {
			past := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Join(state, "lockkeeper", "tokens", a.Space, id), past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.Tokens.Sweep(func(id string) bool { return id == live })
	for id, want := range map[string]string{ended: "", live: "secret", fresh: "secret"} {
		if got, err := a.Tokens.Get(id); err != nil || got != want {
			t.Errorf("token of %s is %q, %v", id, got, err)
		}
	}
}
