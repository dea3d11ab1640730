package run_test

import (
	"fmt"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/machine/machinetest"
)

// An agent can make its tests pass only with files that it may write. Before the tests run, its
// changes to the repository, to directories outside the tree and to file times are removed.
//
// shows: GP-5 SW-75
func TestFakedPass(t *testing.T) {
	for name, c := range map[string]struct{ script, test string }{
		"git runs a program": {`printf '#!/bin/sh\necho one > app/models/words.rb\n' > .git/fsm; chmod +x .git/fsm; git config core.fsmonitor "$PWD/.git/fsm"`,
			"git status > /dev/null; grep one app/models/words.rb"},
		"a hook": {`mkdir -p .git/hooks; printf '#!/bin/sh\necho one > app/models/words.rb\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout`,
			"git checkout -q -b other; grep one app/models/words.rb"},
		"a file in .git":        {`echo one > .git/words`, "grep one .git/words"},
		"a file in .lockkeeper": {`mkdir .lockkeeper; echo one > .lockkeeper/words`, "grep one .lockkeeper/words"},
		"another HEAD":          {`echo 'ref: refs/heads/one' > .git/HEAD`, "git symbolic-ref HEAD | grep one"},
		"the index":             {`git rm -q --cached app/models/words.rb`, "! git ls-files --error-unmatch app/models/words.rb"},
		"the time of a result":  {`sleep 0.1; touch app/models/words.rb`, "test app/models/words.rb -nt app/models/one.rb"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "memory", "tasks")
			if !s.opt.Sandbox.HoldsWrites() {
				machinetest.Lacks(t, "this machine has no sandbox: %s", s.opt.Sandbox.Missing)
			}
			s.opt.Limits.Fixes = 0
			write(t, s.root, "app/models/words.rb", "two\n")
			s.withRepo()
			s.tasks(fmt.Sprintf("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb], tests: [%q]}]\n", c.test))
			s.command(`echo one > app/models/one.rb; ` + c.script)
			if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Failed || !strings.Contains(b.Error, "after 0 fixes") {
				t.Errorf("%+v", b)
			}
			s.holds("app/models/one.rb", "")
			s.holds("app/models/words.rb", "two\n")
		})
	}
}

// If a test command rewrites a file of the batch, the check fails, because it tested other files
// than would land. The agent sees the failure and can write the file so that it stays unchanged.
//
// shows: SW-75
func TestCheckRewritesTheBatch(t *testing.T) {
	for name, test := range map[string]string{"changes it": "echo fine > app/models/one.rb", "removes it": "rm app/models/one.rb", "puts back the old one": "echo old > app/models/old.rb"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "memory", "tasks")
			s.opt.Limits.Fixes = 0
			write(t, s.root, "app/models/old.rb", "old\n")
			s.withRepo()
			s.tasks(fmt.Sprintf("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb, app/models/old.rb], tests: [%q]}]\n", test))
			s.command("echo one > app/models/one.rb; echo new > app/models/old.rb")
			if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Failed || !strings.Contains(b.Error, "it did not test the content that would land") {
				t.Errorf("%+v", b)
			}
			s.holds("app/models/one.rb", "")
			s.holds("app/models/old.rb", "old\n")
		})
	}
}

// A test command that rewrites other files causes a warning, unless git ignores the files.
func TestCheckRewritesOthers(t *testing.T) {
	s := newScene(t, "memory", "tasks")
	write(t, s.root, "app/models/words.rb", "two\n")
	s.withRepo()
	write(t, s.root, "trace.log", "old\n")
	write(t, s.root, ".gitignore", ".lockkeeper\n.pipeline\n.analysis\n*.log\n")
	s.tasks("tasks: [{name: one, prompt: Do it., writes: [app/models/one.rb], tests: ['echo one > app/models/words.rb; echo new > trace.log; echo x > made']}]\n")
	s.command("echo one > app/models/one.rb")
	if b := s.batch(s.run("all"), tasks, "one"); b.Status != flow.Complete {
		t.Errorf("%+v", b)
	}
	s.holds("app/models/words.rb", "two\n")
	warned := s.news(run.NewsWarning)
	if len(warned) != 1 || !strings.Contains(warned[0].Text, "changed 1 file; the changes are undone: app/models/words.rb") {
		t.Errorf("%+v", warned)
	}
}

// command makes a shell script the agent. The agent answers in the requested form.
func (s *scene) command(script string) {
	s.opt.Agents.Named = func(string) (agent.Adapter, error) {
		return agent.ByName("command", "sh", "-c", fmt.Sprintf("prompt=$(cat)\ncase $prompt in '# verify'*) echo '{\"verdict\":\"pass\",\"report\":\"fine\",\"issues\":[]}';; *) { %s\n} >&2; echo '{\"summary\":\"done\"}';; esac", script))
	}
}
