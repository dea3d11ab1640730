package project_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/project"
)

// Concurrent callers get one gate. After Close, the grant of a landing is still held.
func TestGateIsOpenedOnce(t *testing.T) {
	s := lockable(t)
	a, err := project.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.Resolve(lockkeeper.Write, "app/models/a.rb")
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.Acquire(t.Context(), lockkeeper.Request{Holder: "otter", Locks: []lockkeeper.Lock{l}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	gates := make([]*gate.Gate, 8)
	for i := range gates {
		all.Go(func() {
			var err error
			if gates[i], err = a.Gate(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, other := range gates {
		if other != gates[0] {
			t.Fatal("two gates for one codebase")
		}
	}
	if _, err := gates[0].Commit(t.Context(), &g.Grant, []gate.Change{gate.Put("app/models/a.rb", []byte("new"))}); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := open(t, s).Locks.Requests(t.Context())
	if err != nil || len(entries) != 1 || entries[0].State != "held" {
		t.Errorf("after the gate was closed: %+v, %v", entries, err)
	}
}

// A process that stays open follows the allowlist of the file. An invalid file changes nothing.
func TestAllowlistFollowsTheFile(t *testing.T) {
	s := lockable(t)
	file := filepath.Join(s.Dir, "lockkeeper.yaml")
	if err := os.WriteFile(file, []byte("gate: {allowed_write_paths: [app]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := project.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	first, err := a.Gate()
	if err != nil || a.Permits("lib/new.rb") == nil {
		t.Fatalf("the gate may write lib: %v", err)
	}
	for text, permitted := range map[string]bool{"gate: {allowed_write_paths: [lib]}\n": true, "gate: {allowed_write_paths: [doc]}\n": false} {
		for _, content := range []string{text, text + "x: [\n"} {
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := a.Permits("lib/new.rb"); (err == nil) != permitted {
				t.Errorf("%q: %v", content, err)
			}
			g, err := a.Gate()
			if err != nil || g == first {
				t.Errorf("%q: the gate is the first one, %v", content, err)
			}
			if refused := g.Check(t.Context(), nil, "lib/new.rb")[0]; strings.Contains(fmt.Sprint(refused), "allowlist") == permitted {
				t.Errorf("%q: %v", content, refused)
			}
		}
	}
}
