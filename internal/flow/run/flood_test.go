package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/machinetest"
	"lockkeeper/rescue"
)

// A sparse file that is larger than the disk is neither copied nor landed, declared or not. It is
// recorded. The other declared files land.
//
// shows: GP-5 SW-75
func TestSparseFile(t *testing.T) {
	disk := t.TempDir()
	machinetest.Mount(t, "tmpfs", disk, "tmpfs", 0, "size=256m") // a copy of the file fails here instead of filling the machine's disk
	t.Run("on a small disk", func(t *testing.T) {
		t.Setenv("TMPDIR", disk)
		testSparseFile(t)
	})
}

func testSparseFile(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	if !s.opt.Sandbox.HoldsWrites() {
		machinetest.Lacks(t, "this machine has no sandbox: %s", s.opt.Sandbox.Missing)
	}
	s.withRepo()
	s.tasks("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb, app/models/big.bin]}]\n")
	s.command(`echo one > app/models/one.rb; truncate -s 1T app/models/big.bin app/models/other.bin`)
	b := s.batch(s.run("all"), tasks, "one")
	if !flow.IsDone(b.Status) {
		t.Errorf("%+v", b)
	}
	s.holds("app/models/one.rb", "one\n")
	s.holds("app/models/big.bin", "")
	for _, path := range []string{"app/models/big.bin", "app/models/other.bin"} {
		e := s.kept(path)
		if e.Kind != rescue.Noted || !strings.Contains(e.Reason, "its content is not kept") {
			t.Errorf("%+v", e)
		}
	}
	if gaps := s.news(run.NewsGap); len(gaps) != 2 {
		t.Errorf("%+v", gaps)
	}
}

// Declared files land, however many files an agent changes. Files that git ignores are discarded.
// All other files become one gap with one archive.
//
// shows: GP-5 SW-75
func TestManyFiles(t *testing.T) {
	const many = 21_000 // more than one request may lock
	for name, c := range map[string]struct {
		script    string
		gap       string // how the gap begins; "" if there is no gap
		discarded bool
	}{
		"a formatter":  {script: `for f in app/views/many/*; do echo formatted >> $f; done`, gap: fmt.Sprintf("app/views/many/0.rb: coverage: the grant does not hold a lock on it; it is one of %d changed files", many)},
		"loose files":  {script: `i=0; while [ $i -lt 300 ]; do echo $i > app/models/f$i.rb; i=$((i+1)); done`, gap: "app/models/f0.rb: coverage: the grant does not hold a lock on it; it is one of 300 changed files"},
		"a new folder": {script: `mkdir -p app/new/deep; (cd app/new/deep; seq 1 21000 | xargs touch)`, gap: "app/new/deep: coverage: the grant does not hold a lock on it; it is one of 21000 changed files"},
		"dependencies": {script: `mkdir -p node_modules/a; (cd node_modules/a; seq 1 21000 | xargs touch)`, discarded: true},
		"ignored":      {script: `mkdir -p tmp/x; (cd tmp/x; seq 1 300 | xargs touch); echo x > a.log`, discarded: true},
		"a path too long": {script: `python3 -c "
import os
for i in range(60): os.mkdir('d' * 200); os.chdir('d' * 200)"`, gap: strings.Repeat("d", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "memory", "tasks")
			if !s.opt.Sandbox.HoldsWrites() {
				machinetest.Lacks(t, "this machine has no sandbox: %s", s.opt.Sandbox.Missing)
			}
			if name == "a formatter" {
				for i := range many {
					write(t, s.root, fmt.Sprintf("app/views/many/%d.rb", i), "x\n")
				}
			}
			s.opt.Checks.Commands = nil // the commands read every view
			s.withRepo()
			write(t, s.root, ".gitignore", ".lockkeeper\n.pipeline\n.analysis\ntmp/\n*.log\n")
			s.tasks("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb, app/new/one.rb]}]\n")
			s.command(`mkdir -p app/new; echo one > app/models/one.rb; echo new > app/new/one.rb; ` + c.script)
			began := time.Now()
			if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Complete {
				t.Errorf("%+v", b)
			}
			t.Logf("took %s", time.Since(began))
			s.holds("app/models/one.rb", "one\n")
			s.holds("app/new/one.rb", "new\n")
			gaps := s.news(run.NewsGap)
			if c.gap == "" && len(gaps) != 0 || c.gap != "" && (len(gaps) != 1 || !strings.HasPrefix(gaps[0].Text, c.gap)) {
				t.Errorf("gaps: %.300v", gaps)
			}
			list, err := s.opt.Gate.Rescue().List(t.Context())
			must(t, err)
			if len(list) == 1 && !strings.HasPrefix(list[0].Reason, "coverage: ") && name != "a path too long" {
				t.Errorf("the archive is kept because of %q", list[0].Reason)
			}
			if c.gap != "" && (len(list) != 1 || list[0].Kind != rescue.Archive) || c.gap == "" && len(list) != 0 {
				t.Errorf("the shelf has %d entries: %.300v", len(list), list)
			}
			discarded := slices.ContainsFunc(s.news(run.NewsWarning), func(n run.News) bool { return strings.HasPrefix(n.Text, "discarded") })
			if discarded != c.discarded {
				t.Errorf("told %+v", s.news(run.NewsWarning))
			}
			if copies := s.workspaces(); len(copies) != 0 {
				t.Errorf("copies are left: %v", copies)
			}
		})
	}
}

// kept returns the entry of the rescue shelf for a path.
func (s *scene) kept(path string) rescue.Entry {
	s.t.Helper()
	list, err := s.opt.Gate.Rescue().List(s.t.Context())
	must(s.t, err)
	for _, e := range list {
		if e.Path == path {
			return e
		}
	}
	s.t.Fatalf("nothing is kept of %s: %+v", path, list)
	return rescue.Entry{}
}
