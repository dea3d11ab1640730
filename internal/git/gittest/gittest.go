package gittest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Alone removes a person's configuration and variables of git from this process and its children.
// A TestMain calls it before the tests.
func Alone() {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "GIT_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
}

// Env returns the environment of a person who commits and has no configuration. It also works in
// a test that called Hostile.
func Env() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") {
			env = append(env, entry)
		}
	}
	return append(env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=Otter", "GIT_AUTHOR_EMAIL=otter@example.org",
		"GIT_COMMITTER_NAME=Otter", "GIT_COMMITTER_EMAIL=otter@example.org", "LC_ALL=C")
}

// Run runs git in a directory as the person of Env, and returns its output.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, Env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return string(out)
}

// hostile is a configuration with every setting that can change git's output. In it, @/ stands
// for the directory of the programs that Hostile makes.
const hostile = `
[commit]
	gpgSign = true
	verbose = true
	status = true
	cleanup = scissors
	template = @/template
[gpg]
	program = @/refuse
[tag]
	gpgSign = true
[core]
	abbrev = 4
	autocrlf = true
	attributesFile = @/attributes
	commentChar = "*"
	editor = @/never
	excludesFile = @/excludes
	fsmonitor = @/never
	hooksPath = @/hooks
	pager = @/never
	quotePath = true
	splitIndex = true
	untrackedCache = true
[init]
	defaultBranch = trunk
	templateDir = @/hooks
[merge]
	conflictStyle = diff3
	tool = never
[status]
	branch = true
	relativePaths = true
	renames = copies
	short = true
	showStash = true
	showUntrackedFiles = no
	submoduleSummary = true
[diff]
	algorithm = patience
	colorMoved = zebra
	context = 0
	external = @/never
	ignoreSubmodules = all
	interHunkContext = 9
	mnemonicPrefix = true
	noprefix = true
	orderFile = @/template
	relative = true
	renames = copies
	submodule = log
	suppressBlankEmpty = true
	wordRegex = .
[color]
	branch = always
	diff = always
	status = always
	ui = always
[column]
	ui = always
[log]
	abbrevCommit = true
	date = relative
	decorate = full
	follow = true
	showRoot = false
	showSignature = true
[format]
	pretty = oneline
[i18n]
	commitEncoding = ISO-8859-1
	logOutputEncoding = ISO-8859-1
[branch]
	autoSetupMerge = always
[index]
	version = 4
[feature]
	manyFiles = true
[submodule]
	recurse = true
[user]
	useConfigOnly = true
`

// Hostile gives this test and its children the configuration of a person with every setting that
// could disturb a program. Commits are signed with a missing key, and hooks refuse them. Files
// whose names end in .mine are ignored. Changes such as "commit.gpgSign=false" override some
// settings. The test fails if git runs a program of the configuration other than a hook or the
// signer.
func Hostile(t *testing.T, changes ...string) {
	t.Helper()
	for _, entry := range HostileEnv(t, changes...) {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
}

// HostileEnv returns the variables of Hostile, for a program whose environment the test makes.
func HostileEnv(t testing.TB, changes ...string) []string {
	t.Helper()
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	files := map[string]string{
		"template": "a template\n", "excludes": "*.mine\n", "attributes": "*.rb diff=ruby\n", "config": strings.ReplaceAll(hostile, "@/", dir+"/"),
		"never": "#!/bin/sh\necho \"$0 $*\" >> '" + ran + "'\n", "refuse": "#!/bin/sh\necho no key >&2\nexit 1\n",
	}
	for _, hook := range []string{"pre-commit", "commit-msg", "pre-merge-commit", "pre-push", "post-checkout", "reference-transaction"} {
		files["hooks/"+hook] = "#!/bin/sh\necho the hook says no >&2\nexit 1\n"
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "config")
	for _, change := range changes {
		key, value, _ := strings.Cut(change, "=")
		Run(t, dir, "config", "--file", config, key, value)
	}
	t.Cleanup(func() {
		if text, err := os.ReadFile(ran); err == nil {
			t.Errorf("git ran programs of the person's configuration:\n%s", bytes.TrimSpace(text))
		}
	})
	never := filepath.Join(dir, "never")
	return []string{"GIT_CONFIG_GLOBAL=" + config, "GIT_EXTERNAL_DIFF=" + never, "GIT_EDITOR=" + never, "GIT_PAGER=" + never,
		"GIT_DIFF_OPTS=-u0", "GIT_ICASE_PATHSPECS=1", "GIT_TRACE=1"}
}
