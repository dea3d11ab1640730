package hook

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/git"
)

// aliasPatience is how long git may take to tell what an alias means.
const aliasPatience = 3 * time.Second

// alias returns what an alias of git means, or "" if the subcommand is no alias. Git ignores an
// alias with the name of one of its own subcommands.
func (r *reader) alias(dir, act string) string {
	if act == "" || isBuiltin(act) {
		return ""
	}
	if does := r.aliases[strings.ToLower(act)]; does != "" {
		return does
	}
	ctx, cancel := context.WithTimeout(context.Background(), aliasPatience)
	defer cancel()
	return git.NewWorkTree(dir, dir, os.Environ()).Alias(ctx, act)
}

// isBuiltin reports whether a word is a subcommand of git that this package knows.
func isBuiltin(act string) bool {
	_, reads := harmless()["git/"+act]
	_, stages := indexOptions[act]
	_, rewrites := askable[act]
	return reads || stages || rewrites || slices.Contains(strings.Fields(others), act)
}

// others are further subcommands of git.
const others = "am archive bisect bundle bugreport checkout-index cherry clone commit-graph commit-tree credential daemon difftool fast-export fast-import filter-branch format-patch fsck gc gui " +
	"hash-object hook index-pack interpret-trailers lfs maintenance merge-file merge-index merge-tree mergetool mktag mktree notes pack-objects pack-refs prune push read-tree reflog repack replace " +
	"request-pull rerere send-email sparse-checkout submodule subtree svn symbolic-ref unpack-objects update-ref upload-pack verify-commit verify-tag write-tree"

// reconfigured reports whether the options or the environment of git set keys that the command
// does not spell out.
func (r *reader) reconfigured(options []string) bool {
	is := func(name string) bool { return strings.HasPrefix(name, "GIT_CONFIG") }
	for name := range r.prefixes {
		if is(name) {
			return true
		}
	}
	for name := range r.vars {
		if is(name) {
			return true
		}
	}
	return slices.ContainsFunc(options, func(o string) bool {
		return strings.HasPrefix(o, "--config-env") || strings.HasPrefix(strings.ToLower(o), "include")
	})
}

// variable returns a variable of git that is set before the command, or was exported earlier.
func (r *reader) variable(name string) string { return cmp.Or(r.prefixes[name], r.vars[name]) }
