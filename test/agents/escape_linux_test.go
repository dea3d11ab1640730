//go:build agents

package agents_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/scriptedapi"
	"lockkeeper/internal/machine/machinetest"
)

// sharedTree creates a repository with a commit and uncommitted changes in its work tree.
func sharedTree(t *testing.T, root string) {
	t.Helper()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a person", "-c", "user.email=person@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, said)
		}
	}
	write(t, filepath.Join(root, "app/posts.rb"), "class Posts\nend\n")
	write(t, filepath.Join(root, "app/users.rb"), "class Users\nend\n")
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	write(t, filepath.Join(root, "app/posts.rb"), "class Posts\n  # a person works here\nend\n")
	write(t, filepath.Join(root, "notes.txt"), "not in the repository\n")
}

// An escape is a way out of an agent's directory into a shared tree. Its input names the tree
// as SHARED or ../../../SHARED_NAME.
type escape struct {
	name string
	tool scriptedapi.Tool

	// unsafe is set if the escape would change this machine, or stay, without a sandbox. No
	// test runs it without one.
	unsafe bool
}

func escapes() []escape {
	shell := func(name, command string) escape { return escape{name: name, tool: scriptedapi.Bash(command)} }
	unsafe := func(name, command string) escape {
		return escape{name: name, tool: scriptedapi.Bash(command), unsafe: true}
	}
	return []escape{
		shell("an absolute path", `echo owned > SHARED/app/posts.rb`),
		shell("cd", `cd .. && cd ../.. && echo owned >> SHARED_NAME/app/posts.rb`),
		shell("a new file", `echo owned > SHARED/app/new.rb`),
		shell("git reset", `git -C SHARED reset --hard`),
		shell("git stash and clean", `git -C SHARED stash -u; git -C SHARED clean -fdx`),
		shell("git commit", `git -C SHARED -c user.name=a -c user.email=a@b commit -qam owned`),
		shell("git by environment", `GIT_DIR=SHARED/.git GIT_WORK_TREE=SHARED git checkout -f HEAD -- .`),
		shell("a hook", `printf '#!/bin/sh\n' > SHARED/.git/hooks/pre-commit`),
		shell("python and perl", `python3 -c 'open("SHARED/app/posts.rb", "a").write("owned")' || perl -e 'open(F, ">>", "SHARED/app/posts.rb") or die $!; print F "owned"'`),
		shell("a link", `ln -s SHARED here; echo owned > here/app/posts.rb`),
		shell("a hard link", `ln SHARED/app/posts.rb hard && echo owned >> hard`),
		shell("a rename", `mv SHARED/app/posts.rb taken.rb`),
		shell("a rename of all", `mv SHARED SHARED.away && mkdir SHARED`),
		shell("a deletion", `rm -rf SHARED/app`),
		shell("truncation", `truncate -s 0 SHARED/app/posts.rb`),
		shell("a mode", `chmod 777 SHARED/app/posts.rb`),
		unsafe("a mount", `umount SHARED; mount -o remount,rw,bind /; mount -t tmpfs none SHARED; echo owned > SHARED/app/posts.rb`),
		unsafe("namespaces of its own", `unshare -rm sh -c 'mount -o remount,rw,bind /; echo owned > SHARED/app/posts.rb' || echo owned > SHARED/app/posts.rb`),
		unsafe("the root of another", `echo owned > /proc/1/root/SHARED/app/posts.rb || echo owned > /proc/self/root/SHARED/app/posts.rb`),
		unsafe("a daemon", `nohup setsid env -i PATH="$PATH" sh -c ': DAEMON; while :; do echo owned >> SHARED/app/posts.rb; sleep 0.1; done' >/dev/null 2>&1 & sleep 0.5; echo owned > SHARED/app/late.rb`),
		{name: "Write", tool: scriptedapi.Write("SHARED/app/new.rb", "owned\n"), unsafe: true},
	}
}

// placed returns the tool with actual paths in its input: the shared tree of this escape, and a
// daemon.
func (e escape) placed(shared, daemon string) scriptedapi.Tool {
	fill := strings.NewReplacer("SHARED_NAME", filepath.Base(shared), "SHARED", shared, "DAEMON", daemon)
	input := map[string]any{}
	for name, value := range e.tool.Input {
		input[name] = fill.Replace(value.(string))
	}
	return scriptedapi.Tool{Name: e.tool.Name, Input: input}
}

// denied matches the errors of a refused system call.
var denied = regexp.MustCompile(`(?i)read-only file system|permission denied|operation not permitted|EROFS|EACCES|EPERM|invalid cross-device link|must be superuser|device or resource busy`)

// Whatever an unrestricted agent tries, the shared tree stays the same, byte for byte, while
// the agent works in its own directory.
//
// shows: GP-5
func TestEscapes(t *testing.T) {
	claudeProgram(t)
	t.Parallel()
	level := machine(t)
	list := escapes()
	tree := func(root string, i int) string { return filepath.Join(root, fmt.Sprintf("shared%d", i)) }
	daemon := func(root string) string { return "daemon of " + root }
	s := newStage(t, func(root string) []scriptedapi.Play {
		var steps []scriptedapi.Step
		for i, e := range list {
			steps = append(steps, use(e.placed(tree(root, i), daemon(root))))
		}
		return play(append(steps, use(scriptedapi.Bash("echo mine > mine.txt")), scriptedapi.Step{Text: "done"})...)(root)
	})
	before := make([]map[string]entry, len(list))
	for i := range list {
		sharedTree(t, tree(s.root, i))
		before[i] = readTree(t, tree(s.root, i))
	}
	// The trees are visible in the sandbox, so that every attempt finds a tree and not an empty
	// directory.
	seen := s.confinement()
	for i := range list {
		seen.Read = append(seen.Read, tree(s.root, i))
	}
	res, err := s.call(t.Context(), t, s.request("Try everything"), agent.Options{Run: confined(level, seen), Timeout: longest})
	if err != nil || res.Text != "done" {
		t.Fatalf("%q, %v\n%s", res.Text, err, s.said(t))
	}
	if left := running(t, daemon(s.root)); len(left) > 0 && level.Namespaces {
		t.Errorf("still running: %s", strings.Join(left, ", "))
	}
	if got := read(t, filepath.Join(s.dir, "mine.txt")); got != "mine\n" {
		t.Errorf("it could not work in its own directory: %q", got)
	}
	requests := s.api.Requests()
	for i, e := range list {
		t.Run(e.name, func(t *testing.T) {
			if e.name == "a mode" && !level.Namespaces {
				machinetest.Lacks(t, "a sandbox that holds modes: %s", level.Missing)
			}
			if changed := differences(before[i], readTree(t, tree(s.root, i))); len(changed) > 0 {
				t.Errorf("changed: %s", strings.Join(changed, ", "))
			}
			if said := strings.Join(requests[i+1].Results, "\n"); !denied.MatchString(said) {
				t.Errorf("it was not denied, so perhaps not tried: %s", said)
			}
		})
	}
}

// Without a sandbox, each of these escapes changes the shared tree.
func TestEscapesAreWaysOut(t *testing.T) {
	claudeProgram(t)
	t.Parallel()
	for _, e := range escapes() {
		if e.unsafe {
			continue
		}
		root := t.TempDir()
		shared, work := filepath.Join(root, "shared"), filepath.Join(root, "runs/1/work")
		sharedTree(t, shared)
		before := readTree(t, shared)
		if err := os.MkdirAll(work, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", e.placed(shared, "").Input["command"].(string))
		cmd.Dir = work
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", e.name, err, said)
		}
		if len(differences(before, readTree(t, shared))) == 0 {
			t.Errorf("%s changes nothing", e.name)
		}
	}
}
