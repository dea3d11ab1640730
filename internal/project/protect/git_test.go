package protect_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"lockkeeper/internal/project/protect"
)

// files writes files and creates their directories.
func files(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Hook directories are found in every file and variable in which git finds them. Each case was
// compared with git itself.
func TestHooksPath(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string // below the base; the codebase is repo/code
		env   map[string]string
		hook  string // below the base
		git   bool   // git reports the same
	}{
		"repository":     {files: map[string]string{"repo/.git/config": "[core]\n\thooksPath = code/tools\n"}, hook: "repo/code/tools/pre-commit", git: true},
		"odd spelling":   {files: map[string]string{"repo/.git/config": "[CoRe] HooksPATH=\"code/to\\\nols\" ; comment\n"}, hook: "repo/code/tools/pre-commit", git: true},
		"outside":        {files: map[string]string{"repo/.git/config": "[core]\n\thooksPath = ../shared\n"}, hook: "shared/pre-commit", git: true},
		"home":           {files: map[string]string{"home/.gitconfig": "[core]\n\thooksPath = ~/hooks\n"}, hook: "home/hooks/pre-commit", git: true},
		"XDG":            {files: map[string]string{"home/.config/git/config": "[core]\n\thooksPath = ~/hooks\n"}, hook: "home/hooks/pre-commit", git: true},
		"relative to it": {files: map[string]string{"home/.gitconfig": "[core]\n\thooksPath = .githooks\n"}, hook: "repo/.githooks/pre-commit", git: true},
		"included":       {files: map[string]string{"repo/.git/config": "[include]\n\tpath = ../team\n", "repo/team": "[core]\nhooksPath=code/tools\n"}, hook: "repo/code/tools/x", git: true},
		"conditional":    {files: map[string]string{"repo/.git/config": "[includeIf \"onbranch:x\"]\n\tpath = ../team\n", "repo/team": "[core]\nhooksPath=code/tools\n"}, hook: "repo/code/tools/x"},
		"environment":    {env: map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "code/tools"}, hook: "repo/code/tools/pre-commit", git: true},
		"work tree":      {files: map[string]string{"repo/.git/config": "[core]\nrepositoryformatversion=1\n[extensions]\nworktreeConfig=true\n", "repo/.git/config.worktree": "[core]\nhooksPath=code/tools\n"}, hook: "repo/code/tools/x", git: true},
		"manager":        {files: map[string]string{"repo/.git/config": "[core]\n\thooksPath = code/.husky/_\n"}, hook: "repo/code/.husky/pre-commit"},
		"whole codebase": {files: map[string]string{"repo/.git/config": "[core]\n\thooksPath = code\n"}, hook: "repo/code/pre-commit", git: true},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			env := map[string]string{"HOME": filepath.Join(base, "home"), "PATH": os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM": "1"}
			for k, v := range test.env {
				env[k] = v
			}
			files(t, base, map[string]string{"repo/code/a.rb": "a\n", "home/x": ""})
			git := func(args ...string) string {
				cmd := exec.Command("git", args...)
				cmd.Dir = filepath.Join(base, "repo")
				for k, v := range env {
					cmd.Env = append(cmd.Env, k+"="+v)
				}
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(args, err)
				}
				return string(out[:max(len(out)-1, 0)])
			}
			git("init", "-q")
			files(t, base, test.files)
			look := protect.New(protect.Options{Root: filepath.Join(base, "repo/code"), Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }}).Checker()
			if class, is := look.File(filepath.Join(base, test.hook)); !is || class != protect.Hooks {
				t.Errorf("%s: %v %v", test.hook, class, is)
			}
			if _, is := look.File(filepath.Join(base, "repo/code/a.rb")); is {
				t.Error("everything is protected")
			}
			if !test.git {
				return
			}
			said := git("rev-parse", "--git-path", "hooks")
			if !filepath.IsAbs(said) {
				said = filepath.Join(base, "repo", said)
			}
			if want := filepath.Dir(filepath.Join(base, test.hook)); said != want {
				t.Errorf("git has its hooks in %s, not in %s", said, want)
			}
		})
	}
}

// Disabled hooks protect nothing.
func TestNoHooks(t *testing.T) {
	base := t.TempDir()
	files(t, base, map[string]string{".git/config": "[core]\n\thooksPath = /dev/null\n", ".git/HEAD": "ref: refs/heads/main\n"})
	if _, is := protect.New(protect.Options{Root: base}).Checker().File("/dev/null"); is {
		t.Error("/dev/null is protected")
	}
}

// If the git directory of a repository is elsewhere, it is protected there.
func TestGitDirElsewhere(t *testing.T) {
	base := t.TempDir()
	files(t, base, map[string]string{"code/.git": "gitdir: ../meta/worktrees/one\n", "meta/worktrees/one/commondir": "../..\n", "meta/config": "", "other/config": ""})
	env := func(n string) (string, bool) { return filepath.Join(base, "other"), n == "GIT_DIR" }
	look := protect.New(protect.Options{Root: filepath.Join(base, "code"), Env: env}).Checker()
	for i, name := range []string{"meta/config", "meta/hooks/pre-commit", "meta/worktrees/one/HEAD", "other/hooks/x"} {
		if class, is := look.File(filepath.Join(base, name)); !is || class != protect.Git {
			t.Error(strconv.Itoa(i), name, class, is)
		}
	}
	if _, is := look.Tree(base); !is {
		t.Error("the directory above may be moved")
	}
}

// Names are the same on disks that ignore case and invisible characters.
func TestFoldedNames(t *testing.T) {
	look := protect.New(protect.Options{Root: t.TempDir(), Documents: []string{".pipeline"}}).Checker()
	for _, name := range []string{"a/.GIT/x", "a/.g\u200cit/x", ".LOC\u212aKEEPER/x", ".PipeLine/x", "LOCKKEEPER.YAML"} {
		if _, is := look.Below(name); !is {
			t.Errorf("%q is not protected", name)
		}
	}
}
