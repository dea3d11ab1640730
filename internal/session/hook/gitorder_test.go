package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper/internal/git/gittest"
)

// A merge is judged by the commits that it will find: those that the same command fetches or makes
// before.
//
// shows: GP-5
func TestMergeAfterOtherGitCommands(t *testing.T) {
	s := newRepository(t)
	upstream := filepath.Join(t.TempDir(), "upstream")
	s.git("clone", "-q", ".", upstream)
	s.git("remote", "add", "upstream", upstream)
	s.git("fetch", "-q", "upstream")
	gittest.Run(t, upstream, "config", "user.name", "a")
	gittest.Run(t, upstream, "config", "user.email", "a@example.org")
	s.git("worktree", "add", "-q", "-b", "tree", "trees/one")
	s.passes(s.edit("A", user))
	judge := func(want, command string) {
		t.Helper()
		if r := s.bash("B", "PreToolUse", command); r.code != map[string]int{"allowed": 0, "refused": 2}[want] {
			t.Errorf("not %s: %s: %s", want, command, r.all())
		}
		s.bash("B", "PostToolUse", command)
	}
	branch := strings.TrimSpace(gittest.Run(t, upstream, "branch", "--show-current"))
	commit := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(upstream, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		gittest.Run(t, upstream, "commit", "-qam", text)
	}
	commit(post, "class Post # upstream\n")
	judge("allowed", "git fetch -q upstream && git merge -q --ff-only upstream/"+branch)
	judge("allowed", "git fetch && git merge tree; git add "+post+" && git commit -qm x -- "+post+" && git merge tree")
	commit(user, "class User # upstream\n")
	for _, command := range []string{
		"git fetch -q upstream && git merge -q --ff-only upstream/" + branch,
		"git fetch --all; git rebase upstream/" + branch,
		"git fetch upstream && git merge FETCH_HEAD",
		"git fetch upstream +" + branch + ":tree && git merge tree",
		"cd trees/one && git commit -qam x && cd ../.. && git merge tree",
		"git -C trees/one commit -qam x; git merge -q tree",
		"git branch -f tree upstream/" + branch + " && git merge tree",
		"git update-ref refs/heads/tree upstream/" + branch + "; git cherry-pick tree",
	} {
		judge("refused", command)
	}
}

// Commands that change the files of a submodule are refused while others hold some of them.
//
// shows: GP-5
func TestSubmodulesOfOthers(t *testing.T) {
	s := newRepository(t)
	library := filepath.Join(t.TempDir(), "library")
	s.git("clone", "-q", ".", library)
	s.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", library, "vendor/library")
	s.git("commit", "-qm", "a submodule")
	s.edits("B", post, "class Post # of B\n")
	harmful := []string{
		"git submodule foreach 'git add -A'", "git submodule foreach --recursive git reset --hard", "git submodule -q foreach git stash",
		"git submodule update --force", "git submodule update --remote", "git submodule deinit -f --all",
		"git reset -q --hard --recurse-submodules", "git -c submodule.recurse=true reset --hard", "cd vendor/library && git add -A",
	}
	harmless := []string{"git submodule status", "git submodule foreach git status", "git submodule update --init --recursive", "git submodule foreach 'git add " + post + "'", "git submodule sync", "git add vendor"}
	s.edits("A", "vendor/library/"+user, "class User # half an edit of A\n")
	for _, command := range harmful {
		s.refuses(s.bash("B", "PreToolUse", command))
	}
	for _, command := range harmless {
		s.passes(s.bash("B", "PreToolUse", command))
		s.passes(s.bash("B", "PostToolUse", command))
	}
	gittest.Run(t, s.at("vendor/library"), "checkout", "-q", "--detach")
	gittest.Run(t, s.at("vendor/library"), "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "another commit")
	s.refuses(s.bash("B", "PreToolUse", "git submodule update"), user) // it would check out the old commit
}
