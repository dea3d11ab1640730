package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A clone follows its upstream under locks on exactly the files that change. It never overwrites what a person
// changed, and leaves a clone with commits of its own.
func TestFollow(t *testing.T) {
	root, server := published(t)
	clone := filepath.Join(t.TempDir(), "clone")
	person(t, root, "clone", "-q", server, clone)
	write := func(dir, name, text string) { must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) }
	push := func(name, text string) {
		write(root, name, text)
		person(t, root, "add", "-A")
		person(t, root, "commit", "-q", "-m", "next")
		person(t, root, "push", "-q")
	}
	r := open(t, clone)
	var locked []string
	free := 0
	lock := func(paths []string) (func() error, error) {
		locked = paths
		return func() error { free++; return nil }, nil
	}
	must(t, r.Follow(t.Context(), lock))
	push("a", "2")
	push("b c", "new")
	held := errors.New("held")
	if err := r.Follow(t.Context(), func([]string) (func() error, error) { return nil, held }); !errors.Is(err, held) || head(t, clone, "HEAD") == head(t, root, "HEAD") {
		t.Errorf("files of others were changed: %v", err)
	}
	must(t, r.Follow(t.Context(), lock))
	if now := head(t, clone, "HEAD"); now != head(t, root, "HEAD") || !slices.Equal(locked, []string{"a", "b c"}) || free != 1 {
		t.Errorf("at %s, locked %q, %d unlocked", now, locked, free)
	}
	push("a", "3")
	write(clone, "a", "mine")
	if err := r.Follow(t.Context(), lock); err == nil {
		t.Error("a person's change did not stop it")
	}
	if text, err := os.ReadFile(filepath.Join(clone, "a")); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	person(t, clone, "commit", "-q", "-am", "mine")
	was := head(t, clone, "HEAD")
	must(t, r.Follow(t.Context(), lock))
	if now := head(t, clone, "HEAD"); now != was {
		t.Errorf("a clone with commits of its own went from %s to %s", was, now)
	}
}
