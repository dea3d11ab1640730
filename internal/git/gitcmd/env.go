package gitcmd

import (
	"slices"
	"strings"
)

// answers are variables that change git's output or its interpretation of paths.
var answers = []string{
	"GIT_DIFF_OPTS", "GIT_EXTERNAL_DIFF", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_LITERAL_PATHSPECS", "GIT_NOGLOB_PATHSPECS",
}

// places are variables that select git's repository or a shell's directory. They belong to the
// directory in which the caller was started.
var places = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE",
	"GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX",
	"GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE", "OLDPWD", "PWD",
}

// Plain returns an environment in which git's output has no additions: no traces, no diff program
// of the person, and unchanged paths. In a hook, git still uses the repository of the hook.
func Plain(env []string) []string {
	return without(env, func(name string) bool {
		return slices.Contains(answers, name) || strings.HasPrefix(name, "GIT_TRACE")
	})
}

// Outside returns a plain environment in which git finds the repository by its working directory,
// even if a hook of another repository started the caller.
func Outside(env []string) []string {
	return without(Plain(env), func(name string) bool { return slices.Contains(places, name) })
}

func without(env []string, is func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return is(name)
	})
}
