package git

import (
	"errors"
	"slices"
	"strings"

	"lockkeeper/internal/git/gitcmd"
)

// terminalVariables let git or the signer talk to a person at a terminal, or describe
// another operation in the reflog.
var terminalVariables = []string{"GIT_REFLOG_ACTION", "GPG_TTY"}

// newGit returns a git that finds its repository only by its directory, never prompts, and
// writes English messages. Hooks keep their charset.
func newGit(dir string, env []string) gitcmd.Command {
	own := slices.DeleteFunc(gitcmd.Outside(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(terminalVariables, name)
	})
	return gitcmd.Command{Dir: dir, Settings: settings, Env: append(own, "PWD="+dir, "GIT_EDITOR=:", "GIT_TERMINAL_PROMPT=0", "LANGUAGE=C")}
}

// settings keep git from starting programs that were not requested, and from omitting submodules
// because of the person's configuration. Git writes messages unchanged and prints full commit
// names.
var settings = []string{"-c", "core.fsmonitor=false", "-c", "diff.ignoreSubmodules=none", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "i18n.commitEncoding=UTF-8", "-c", "core.abbrev=no"}

// exitOf returns the exit code of a git that failed by itself, and 0 otherwise.
func exitOf(err error) int {
	var failed *gitcmd.Error
	if errors.As(err, &failed) {
		return failed.Exit
	}
	return 0
}

// saysOf returns the message of a git that failed.
func saysOf(err error) string {
	var failed *gitcmd.Error
	if errors.As(err, &failed) {
		return failed.Says
	}
	return ""
}

// list encodes fields for git's standard input.
func list(fields []string) string { return strings.Join(fields, "\x00") + "\x00" }

// fields splits the output of git -z.
func fields(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

// prefixed adds a prefix to each path.
func prefixed(prefix string, paths []string) []string {
	spelled := make([]string, len(paths))
	for i, path := range paths {
		spelled[i] = prefix + path
	}
	return spelled
}

// literal makes a path a pathspec that matches only itself. GIT_LITERAL_PATHSPECS would do
// so too, but hooks inherit it and may use patterns.
const literal = ":(literal)"
