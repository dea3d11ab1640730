package run_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/machinetest"
)

// Whatever an agent does, the shared tree is unchanged or has only the declared changes. None of
// its processes keeps running, and the run reports what happened.
//
// shows: GP-5 SW-71 PL-80 SW-75
func TestHostileAgents(t *testing.T) {
	const good = `echo '{"summary":"done"}'`
	daemon := fmt.Sprint(1_000_000_000 + os.Getpid()) // seconds; no other process has this argument
	for name, c := range map[string]struct {
		script string
		failed string // part of the error; empty: the batch completes
		lands  string // the content of the declared file afterwards
		gap    string
		limit  time.Duration // the timeout of a call; 0: no agent can reach it
	}{
		"prints garbage":               {script: `echo one > app/models/one.rb; head -c 20000 /dev/urandom`, lands: "one\n"},
		"prints nothing":               {script: `echo one > app/models/one.rb`, lands: "one\n"},
		"answers in another form":      {script: `echo '{"other": 1}'`, failed: "summary"},
		"exits 1":                      {script: `echo no; exit 1`, failed: "exit status 1"},
		"is killed":                    {script: `kill -9 $$`, failed: "kill"},
		"hangs":                        {script: `sleep 100000`, failed: "timed out after", limit: 2 * time.Second},
		"writes into the shared tree":  {script: `echo evil > "$SHARED/app/models/one.rb" 2>/dev/null; echo one > app/models/one.rb; ` + good, lands: "one\n"},
		"goes up":                      {script: `for d in .. ../.. ../../..; do echo evil > $d/evil 2>/dev/null; done; echo one > app/models/one.rb; ` + good, lands: "one\n"},
		"reads the store":              {script: `cat "$SHARED/.lockkeeper/calls"/*/*/output* > app/models/one.rb 2>/dev/null; echo one > app/models/one.rb; ` + good, lands: "one\n"},
		"writes what it did not say":   {script: `echo one > app/models/one.rb; echo two > app/models/two.rb; rm app/models/user.rb; ` + good, lands: "one\n", gap: "app/models/two.rb"},
		"makes links":                  {script: `ln -s /etc/passwd app/models/one.rb; ` + good, gap: "app/models/one.rb"},
		"links to the shared tree":     {script: `rm -rf app; ln -s "$SHARED/app" app; ` + good, gap: "app"},
		"deletes its workspace":        {script: `d=$PWD; cd /; rm -rf "$d"/* "$d"/.[!.]*; ` + good, gap: ".gitignore: "},
		"resets its repository":        {script: `echo one > app/models/one.rb; git reset -q --hard; git clean -qfdx; git checkout -q -b x 2>/dev/null; ` + good},
		"resets the shared repository": {script: `git -C "$SHARED" reset -q --hard >/dev/null 2>&1; git -C "$SHARED" stash -q >/dev/null 2>&1; echo one > app/models/one.rb; ` + good, lands: "one\n"},
		"leaves a daemon":              {script: `(env -i setsid sh -c 'exec sleep ` + daemon + `' >/dev/null 2>&1 &) ; (nohup sleep ` + daemon + ` >/dev/null 2>&1 &); echo one > app/models/one.rb; ` + good, lands: "one\n"},
		"writes a strange name":        {script: `printf x > "$(printf 'app/models/a\nb\033[31m.rb')"; echo one > app/models/one.rb; ` + good, lands: "one\n", gap: "app/models/a"},
		"writes very much":             {script: `i=0; while [ $i -lt 300 ]; do echo $i > app/models/f$i.rb; i=$((i+1)); done; echo one > app/models/one.rb; ` + good, lands: "one\n", gap: "app/models/f0.rb"},
		"signals its supervisor":       {script: `kill -9 $PPID 2>/dev/null; echo one > app/models/one.rb; ` + good, lands: "one\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "memory", "tasks")
			if !s.opt.Sandbox.HoldsWrites() {
				machinetest.Lacks(t, "this machine has no sandbox: %s", s.opt.Sandbox.Missing)
			}
			s.withRepo()
			write(t, s.root, "app/models/uncommitted.rb", "a person's work\n") // a reset would delete it
			s.tasks("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb]}]\n")
			if c.limit != 0 {
				s.opt.Agents.Timeout = c.limit
			}
			s.opt.Agents.Named = func(string) (agent.Adapter, error) {
				return agent.ByName("command", "sh", "-c", fmt.Sprintf("prompt=$(cat)\nSHARED=%s\ncase $prompt in '# verify'*) echo '{\"verdict\":\"pass\",\"report\":\"fine\",\"issues\":[]}';; *) %s;; esac", s.root, c.script))
			}
			before := s.files()
			out := s.run("all")
			b := s.batch(out, tasks, "one")
			switch {
			case c.failed == "" && !flow.IsDone(b.Status):
				t.Errorf("%+v", b)
			case c.failed != "" && (b.Status != flow.Failed || !strings.Contains(b.Error, c.failed)):
				t.Errorf("%+v, want an error with %q", b, c.failed)
			}
			after := s.files()
			if c.lands != "" {
				before["app/models/one.rb"] = c.lands
			}
			if !maps.Equal(before, after) {
				for path := range after {
					if before[path] != after[path] {
						t.Errorf("%q holds %q, want %q", path, after[path], before[path])
					}
				}
				for path := range before {
					if _, there := after[path]; !there {
						t.Errorf("%q is gone", path)
					}
				}
			}
			if c.gap != "" {
				told := false
				for _, n := range s.news(run.NewsGap) {
					told = told || strings.HasPrefix(n.Text, c.gap)
				}
				if !told {
					t.Errorf("no gap %s: %+v", c.gap, s.news(run.NewsGap))
				}
			}
			if left := processesWith(t, daemon); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
			if evil, _ := filepath.Glob(filepath.Join(s.side, "*", "evil")); len(evil) != 0 {
				t.Errorf("written outside: %v", evil)
			}
			if copies := s.workspaces(); len(copies) != 0 {
				t.Errorf("copies are left: %v", copies)
			}
		})
	}
}

// processesWith lists the processes that were started with an argument.
func processesWith(t testing.TB, argument string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, file := range files {
		args, _ := os.ReadFile(file) // the process may have ended
		if slices.Contains(strings.Split(string(args), "\x00"), argument) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
