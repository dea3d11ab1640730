package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

// status returns the state of a tree according to git, for comparison. It excludes remotes and
// .lockkeeper, which a workspace does not have.
func status(t *testing.T, dir string) string {
	t.Helper()
	lines := strings.SplitAfter(git(t, dir, "status", "--porcelain=v2", "--branch", "--ignored"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "# branch.upstream") || strings.HasPrefix(line, "# branch.ab") || line == "! .lockkeeper/\n"
	})
	return strings.Join(lines, "") + git(t, dir, "diff", "--cached") + git(t, dir, "diff") +
		git(t, dir, "ls-files", "--stage", "-v")
}

func sameStatus(t *testing.T, w *Workspace, root, sub string) {
	t.Helper()
	got, want := status(t, filepath.Join(tree(t, w), sub)), status(t, filepath.Join(root, sub))
	if got != want {
		t.Errorf("git does not say the same in %s:\n%s", sub, diff.Diff("shared", []byte(want), "workspace", []byte(got)))
	}
}

// shows: GP-5
func TestGitSeesTheSame(t *testing.T) {
	scenes := map[string]func(t *testing.T) (root string){
		"everything": func(t *testing.T) string { return newRepository(t) },
		"unborn": func(t *testing.T) string {
			root := t.TempDir()
			git(t, root, "init", "-q", "-b", "trunk")
			plant(t, root, map[string]string{"a": "a", "b": "b"})
			git(t, root, "add", "a")
			return root
		},
		"detached": func(t *testing.T) string {
			root := newRepository(t)
			git(t, root, "checkout", "-q", "--detach")
			return root
		},
		"merging": func(t *testing.T) string {
			root := newRepository(t)
			git(t, root, "stash", "-q", "-u")
			git(t, root, "checkout", "-q", "other")
			write(t, root, "both.rb", "theirs\n")
			git(t, root, "commit", "-q", "-a", "-m", "theirs")
			git(t, root, "checkout", "-q", "main")
			write(t, root, "both.rb", "ours\n")
			git(t, root, "commit", "-q", "-a", "-m", "ours")
			if out, err := tryGit(root, nil, "merge", "other"); err == nil {
				t.Fatalf("merged: %s", out)
			}
			return root
		},
		"linked worktree": func(t *testing.T) string {
			root := filepath.Join(t.TempDir(), "second")
			git(t, newRepository(t), "worktree", "add", "-q", "-b", "second", root)
			write(t, root, "new.rb", "new")
			git(t, root, "add", "new.rb")
			return root
		},
		"split index": func(t *testing.T) string {
			root := newRepository(t)
			git(t, root, "update-index", "--split-index")
			write(t, root, "more.rb", "more")
			git(t, root, "add", "more.rb")
			return root
		},
		"sha256": func(t *testing.T) string { return newRepository(t, "--object-format=sha256") },
		"settings": func(t *testing.T) string {
			root := newRepository(t)
			write(t, root, ".git/info/exclude", "new.rb\n")
			git(t, root, "config", "core.fileMode", "false")
			git(t, root, "config", "filter.shout.clean", `tr a-z A-Z | sed 's/"/\\/' # ü`)
			write(t, root, ".git/info/attributes", "*.txt filter=shout\n")
			must(t, os.Chmod(filepath.Join(root, "app/run.sh"), 0o644))
			write(t, root, "loud.txt", "loud\n")
			git(t, root, "add", "loud.txt")
			git(t, root, "update-index", "--assume-unchanged", "app/models/user.rb")
			write(t, root, "app/models/user.rb", "unread\n")
			return root
		},
		"sparse": func(t *testing.T) string {
			root := newRepository(t)
			git(t, root, "stash", "-q", "-u")
			git(t, root, "sparse-checkout", "set", "docs")
			write(t, root, "new", "new")
			return root
		},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			root := scene(t)
			before := contents(t, root)
			w := open(t, Options{Root: root})
			same(t, "the shared tree", contents(t, root), before)
			sameStatus(t, w, root, ".")
			wantChanges(t, w)
			if name == "unborn" {
				return
			}
			if got, want := git(t, tree(t, w), "log", "--oneline", "--decorate=no"), git(t, root, "log", "--oneline", "--decorate=no"); got != want {
				t.Errorf("the log is\n%s\nand not\n%s", got, want)
			}
			git(t, tree(t, w), "fsck", "--connectivity-only")
		})
	}
}

// shows: GP-5
func TestPrivateRepositoryIsPrivate(t *testing.T) {
	root := newRepository(t)
	git(t, root, "remote", "add", "origin", "ssh://example.org/x.git")
	git(t, root, "config", "branch.main.remote", "origin")
	git(t, root, "config", "core.hooksPath", filepath.Join(root, ".git/hooks"))
	git(t, root, "config", "alias.x", "!rm -rf /tmp/nothing")
	git(t, root, "stash", "-q")
	write(t, root, ".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
	must(t, os.Chmod(filepath.Join(root, ".git/hooks/pre-commit"), 0o755))
	w := open(t, Options{Root: root})
	if out := git(t, tree(t, w), "remote"); out != "" {
		t.Errorf("it has a remote: %s", out)
	}
	if out := git(t, tree(t, w), "stash", "list"); out != "" {
		t.Errorf("it has a stash: %s", out)
	}
	config := git(t, tree(t, w), "config", "--local", "--list")
	for _, word := range []string{"origin", "hookspath", "alias", root} {
		if strings.Contains(strings.ToLower(config), strings.ToLower(word)) {
			t.Errorf("%s is in its configuration:\n%s", word, config)
		}
	}
	before := contents(t, root)
	sh(t, w, "git config user.name x; git config user.email x@example.org; git add .; git commit -q -m own; git branch mine; git stash list; git tag -d v1")
	same(t, "the shared tree", contents(t, root), before)
	if out := git(t, root, "branch", "--list", "mine"); out != "" {
		t.Error("a branch of the workspace is one of the shared repository")
	}
	if wanted := filepath.Join(root, ".git", "objects"); strings.TrimSpace(read(t, tree(t, w), ".git/objects/info/alternates")) != wanted {
		t.Error("the objects are not those of the shared repository")
	}
}

// Whatever git does in a workspace, the shared tree stays as it is.
//
// shows: GP-5
func TestHostileGit(t *testing.T) {
	root := newRepository(t)
	git(t, root, "worktree", "add", "-q", filepath.Join(t.TempDir(), "beside"), "other")
	write(t, root, "nested/file", "nested")
	git(t, filepath.Join(root, "nested"), "init", "-q")
	git(t, filepath.Join(root, "nested"), "add", ".")
	git(t, filepath.Join(root, "nested"), "commit", "-q", "-m", "nested")
	write(t, root, "nested/file", "edited")
	before := contents(t, root)
	for _, script := range []string{
		"git reset -q --hard", "git clean -fdxq", "git clean -ffdxq", "git checkout -q -f other", "git checkout -q -- .", "git gc -q --prune=now --aggressive",
		"git worktree prune; git prune", "git stash -q -u; git stash drop -q", "git repack -q -a -d; git prune-packed", "git rm -q -r -f .",
		"git update-ref -d refs/heads/main; git reflog expire --expire=now --all; git gc -q --prune=now",
		"rm -rf .git; ! git status; ! git reset -q --hard", "cd app; rm -rf ../.git; ! git reset -q --hard HEAD", "cd nested; git reset -q --hard; git clean -ffdxq",
		"rm -rf nested/.git; cd nested; git reset -q --hard; git clean -ffdxq", "git config core.worktree ..; ! git -C .. status",
		"git submodule foreach --recursive git reset --hard", "git worktree add -q ../second; cd ../second; git reset -q --hard; git clean -fdxq",
	} {
		w := open(t, Options{Root: root})
		sh(t, w, script)
		same(t, "the shared tree after "+script, contents(t, root), before)
		must(t, w.Close(t.Context(), false))
	}
	git(t, root, "fsck", "--strict")
}

// If a command is started from a hook of the shared repository, its variables point there. Env
// removes them.
func TestEnvironmentLeadsNowhere(t *testing.T) {
	root := newRepository(t)
	w := open(t, Options{Root: root})
	before := contents(t, root)
	environ := append(os.Environ(), "GIT_DIR="+root+"/.git", "GIT_WORK_TREE="+root, "GIT_INDEX_FILE="+root+"/.git/index", "PWD="+root, "OLDPWD="+root,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.worktree", "GIT_CONFIG_VALUE_0="+root, "GIT_CEILING_DIRECTORIES=/nowhere", "KEPT=x=y")
	env := w.Env(environ)
	if !slices.Contains(env, "KEPT=x=y") || strings.Contains(strings.Join(env, "\n"), root+"/.git") {
		t.Errorf("the environment is %q", env)
	}
	for _, args := range [][]string{{"reset", "-q", "--hard"}, {"clean", "-fdxq"}} {
		if out, err := tryGit(tree(t, w), env, args...); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	same(t, "the shared tree", contents(t, root), before)
	if got, err := tryGit(tree(t, w), env, "rev-parse", "--show-toplevel"); err != nil || strings.TrimSpace(got) != tree(t, w) {
		t.Errorf("git works in %s, %v", got, err)
	}
}

// shows: GP-5
func TestSubmodules(t *testing.T) {
	onlyCopies(t, "the sandbox renames directories of layers, and a mount alone does not")
	library := newRepository(t)
	git(t, library, "stash", "-q", "-u")
	root := newRepository(t)
	git(t, root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "lib/one")
	git(t, root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "two")
	// Older versions of git stored the path of the repository as an absolute path.
	write(t, root, "two/.git", "gitdir: "+filepath.Join(root, ".git/modules/two")+"\n")
	write(t, root, "lib/one/both.rb", "edited in the submodule\n")
	plant(t, root, map[string]string{"broken/.git": "gitdir: " + filepath.Join(root, ".git/modules/none") + "\n", "broken/x": "x", "linked/.git": "->../.git", "linked/y": "y"})
	before := contents(t, root)
	w := open(t, Options{Root: root})
	sameStatus(t, w, root, ".")
	for _, sub := range []string{"lib/one", "two", "linked"} {
		sameStatus(t, w, root, sub)
		if got := strings.TrimSpace(git(t, filepath.Join(tree(t, w), sub), "rev-parse", "--absolute-git-dir")); got != filepath.Join(tree(t, w), sub, ".git") {
			t.Errorf("%s leads to %s", sub, got)
		}
	}
	wantChanges(t, w)
	var odd []string
	for _, o := range w.Oddities() {
		what, _, _ := strings.Cut(o.What, " it: ")
		odd = append(odd, o.Path+": "+what)
	}
	if want := []string{"broken/.git: not copied: git cannot read"}; !slices.Equal(odd, want) {
		t.Errorf("oddities %q", odd)
	}
	sh(t, w, "for d in lib/one two linked; do (cd $d; git reset -q --hard; git clean -ffdxq); done; ! git -C broken reset --hard HEAD~5; git submodule --quiet deinit -f --all")
	same(t, "the shared tree", contents(t, root), before)
}

func TestNoRepository(t *testing.T) {
	outer := t.TempDir()
	git(t, outer, "init", "-q")
	root := filepath.Join(outer, "root")
	plant(t, root, map[string]string{"a": "a", ".git/": ""})
	w := open(t, Options{Root: root})
	if out, err := tryGit(tree(t, w), w.Env(os.Environ()), "status"); err == nil {
		t.Errorf("git found a repository: %s", out)
	}
	wantChanges(t, w)
	sh(t, w, "git init -q")
	wantChanges(t, w)
}

func TestRepositoryThatGitRefuses(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	plant(t, root, map[string]string{"a": "a", ".git": "gitdir: /nowhere\n"})
	if w, err := Make(t.Context(), Options{Root: root, Dir: dir}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("%v, %v", w, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
