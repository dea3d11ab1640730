package hook_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"lockkeeper/internal/git/gittest"
)

// git runs git in the codebase.
func (s *stage) git(args ...string) {
	s.t.Helper()
	gittest.Run(s.t, s.dir, args...)
}

// newRepository returns a stage with everything committed except a person's work: an edit, notes,
// and settings that git ignores, next to build products.
func newRepository(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.git("init", "-q")
	s.write(".gitignore", ".env\ndist\n")
	s.git("add", ".")
	s.git("commit", "-qm", "first")
	s.write(user, "class User # by a person\nend\n")
	s.write("notes/plan.txt", "a plan\n")
	s.write(".env", "SECRET=1\n")
	s.write("dist/out.js", "made\n")
	return s
}

// A session can remove uncommitted content only if it knows that content, because it may be a
// person's work.
//
// shows: GP-5
func TestDiscards(t *testing.T) {
	s := newRepository(t)
	const plan = "notes/plan.txt"
	for _, test := range []struct {
		command string
		takes   []string // empty: the command is allowed
	}{
		{"git checkout -- " + user, []string{user}},
		{"git checkout .", []string{user}},
		{"git checkout HEAD -- app", []string{user}},
		{"git checkout -f", []string{user}},
		{"git restore " + user, []string{user}},
		{"git restore '*.rb'", []string{user}},
		{"git restore -SW .", []string{user}},
		{"cd app && git restore models/user.rb", []string{user}},
		{"git reset --hard", []string{user}},
		{"git switch --discard-changes main", []string{user}},
		{"git stash", []string{user}},
		{"git stash -u", []string{user, plan}},
		{"git rebase --abort", []string{user}},
		{"git rm -f " + user, []string{user}},
		{"git clean -fd", []string{plan}},
		{"git clean -f notes", []string{plan}},
		{"git clean -fd -e x", []string{plan}},
		{"git clean -fdx -e .lockkeeper", []string{plan, ".env"}},
		{"git clean -fX", []string{".env"}},
		{"git checkout '*.rb'", []string{user}},
		{"git checkout :/", []string{user}},
		{"git checkout HEAD ':(top)app'", []string{user}},
		{"git reset --merge", []string{user}},
		{"git worktree remove --force notes", []string{plan}},
		{"rsync -a --delete test/ app/", []string{user}},
		{"rm " + user, []string{user}},
		{"rm -f notes/*.txt", []string{plan}},
		{"rm -rf notes", []string{plan}},
		{"rm -rf app", []string{user}},
		{"rm .env", []string{".env"}},
		{"python3 -c \"import os; os.remove('" + plan + "')\"", []string{plan}},
		{"find notes -type f -delete", []string{plan}},
		{"find app notes -type f -exec rm {} +", []string{user, plan}},

		{"git checkout -- " + post, nil},
		{"git restore --staged " + user, nil},
		{"git checkout -b topic", nil},
		{"git switch main", nil},
		{"git stash push -- " + post, nil},
		{"git stash list", nil},
		{"git reset " + user, nil},
		{"git clean -f", nil}, // it leaves directories alone
		{"git clean -nd", nil},
		{"git clean -fd app", nil},
		{"cd app && git clean -fdx", nil},
		{"git clean -fdx -e .lockkeeper --exclude=.env -e notes/", nil},
		{"git worktree remove notes", nil}, // git itself checks it
		{"rsync -an --delete test/ app/", nil},
		{"rm " + post, nil}, // git has its content
		{"rm -rf app/views test", nil},
		{"rm -rf dist nowhere nowhere/else", nil}, // ignored files can be made again
		{"rm dist/out.js", nil},
		{"mv notes elsewhere", nil},
	} {
		t.Run(test.command, func(t *testing.T) {
			s.t = t
			r := s.bash("A", "PreToolUse", test.command)
			if len(test.takes) == 0 {
				s.passes(r)
			} else {
				s.refuses(r, append(test.takes, "that you neither created nor read")...)
				s.passes(s.edit("B", post)) // a refused command keeps neither files nor .git locked
			}
			s.passes(s.claude("A", "Stop", "", nil))
			s.passes(s.claude("B", "Stop", "", nil))
		})
	}
	s.t = t
	for _, command := range []string{"git clean -fdx", "git stash -a -m x"} {
		s.refuses(s.bash("A", "PreToolUse", command), ".lockkeeper", "only a person")
	}
	s.says(s.bash("A", "PreToolUse", "git clean -fdX"), "next: git clean … -e .lockkeeper")
	s.write("lockkeeper.yaml", "# changed by a person\n")
	s.refuses(s.bash("A", "PreToolUse", "git checkout ."), "lockkeeper.yaml", "only a person")
}

// An agent can discard its own work and files that it has read.
//
// shows: GP-5
func TestDiscardsOwn(t *testing.T) {
	s := newRepository(t)
	s.reads("A", user)
	s.reads("A", "notes/plan.txt")
	s.edits("A", post, "class Post # by A\nend\n")
	const build = "./build"
	s.passes(s.bash("A", "PreToolUse", build))
	s.write("out.bin", "made by the command\n")
	s.write("app/views/users/index.erb", "formatted by the command\n")
	s.passes(s.bash("A", "PostToolUse", build))
	for _, command := range []string{"git stash -u", "git reset --hard && git clean -fd", "git checkout " + post, "git restore .", "rm out.bin", "rm -rf notes app"} {
		s.passes(s.bash("A", "PreToolUse", command))
		s.passes(s.bash("A", "PostToolUse", command))
	}
	s.write(post, "class Post # by a person, since\nend\n")
	s.refuses(s.bash("A", "PreToolUse", "git checkout "+post), post)
	s.reads("A", post)
	s.write("more.txt", "by a person, since\n")
	s.refuses(s.bash("A", "PreToolUse", "git clean -fd"), "more.txt")
	s.passes(s.bash("A", "PreToolUse", "git checkout "+post))
}

// Without git, no removed file can be restored.
//
// shows: GP-5
func TestDiscardsWithoutGit(t *testing.T) {
	s := newStage(t)
	s.refuses(s.bash("A", "PreToolUse", "rm "+user), user, "that you neither created nor read")
	s.refuses(s.bash("A", "PreToolUse", "rm -r app/models"), user, post)
	s.reads("A", user)
	s.passes(s.bash("A", "PreToolUse", "rm "+user))
	if err := os.Symlink("post.rb", s.at(filepath.Join("app/models/link.rb"))); err != nil {
		t.Fatal(err)
	}
	s.passes(s.bash("A", "PreToolUse", "rm app/models/link.rb nothing"))
}

// Files that others hold are not discarded, even if the session has seen them.
//
// shows: GP-5 CF-15
func TestDiscardsHeld(t *testing.T) {
	s := newRepository(t)
	s.reads("B", user)
	s.reads("B", "notes/plan.txt")
	s.passes(s.edit("A", user))
	s.passes(s.edit("A", "notes/plan.txt"))
	for _, command := range []string{"git clean -fdx", "git stash -u", "git checkout -- " + user, "git restore " + user, "git restore .", "rm -rf app", "rm " + user,
		"git reset --hard", "git switch main", "git rm " + user, "find notes -delete"} {
		s.refuses(s.bash("B", "PreToolUse", command), "held by")
	}
}

// Git is asked only a few times, however many directories a command names. Otherwise the answer
// would come too late.
//
// shows: GP-5
func TestDiscardsInManyDirectories(t *testing.T) {
	s := newRepository(t)
	for i := range 40 {
		s.write(fmt.Sprintf("packages/%d/out/a.js", i), "made\n")
	}
	s.write("packages/7/out/.env", "SECRET=1\n")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, asked := t.TempDir(), filepath.Join(t.TempDir(), "asked")
	script := fmt.Sprintf("#!/bin/sh\necho x >> '%s'\nexec '%s' \"$@\"\n", asked, git)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s.refuses(s.bash("A", "PreToolUse", "rm -rf packages/*/out"), "packages/0/out/a.js", "and 38 more")
	s.refuses(s.bash("A", "PreToolUse", "rm packages/*/out/.env"), "packages/7/out/.env")
	s.git("add", "packages")
	s.git("commit", "-qm", "second")
	s.refuses(s.bash("A", "PreToolUse", "rm -rf packages/*/out"), "packages/7/out/.env")
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	s.passes(s.bash("A", "PreToolUse", "rm packages/*/out/a.js"))
	if times, err := os.ReadFile(asked); err != nil || len(times) > len("x\n")*4 {
		t.Errorf("git was asked %d times: %v", len(times)/len("x\n"), err)
	}
}

// A session cannot discard what another session wrote while its command ran.
//
// shows: GP-5
func TestDiscardsWhatAnotherSessionWroteDuringACommand(t *testing.T) {
	s := newRepository(t)
	const tests, mine = "make test", "made/by/tests.txt"
	s.reads("A", user)
	s.passes(s.bash("A", "PreToolUse", tests))
	s.edits("B", post, "class Post # by B\nend\n")
	s.passes(s.replace("B", "new.txt"))
	s.write("new.txt", "by B\n")
	s.passes(s.claude("B", "PostToolUse", "Write", map[string]any{"file_path": s.at("new.txt")}))
	s.passes(s.claude("B", "Stop", "", nil))
	s.write(mine, "by the tests\n")
	s.passes(s.bash("A", "PostToolUse", tests))
	for command, file := range map[string]string{"git checkout " + post: post, "git stash": post, "git reset --hard": post, "rm new.txt": "new.txt"} {
		s.refuses(s.bash("A", "PreToolUse", command), file, "that you neither created nor read")
	}
	s.passes(s.bash("A", "PreToolUse", "rm -r made"))
	s.passes(s.claude("A", "Stop", "", nil))
	s.passes(s.bash("B", "PreToolUse", "rm new.txt"))
}
