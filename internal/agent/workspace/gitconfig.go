//go:build unix

package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// sharedKeys are settings of a repository that decide what git status says of a
// file, or who commits. No other is taken into a private repository: least of all
// remotes, hooks and where the work tree is.
var sharedKeys = []string{
	"core.filemode", "core.ignorecase", "core.precomposeunicode", "core.symlinks", "core.autocrlf", "core.eol", "core.safecrlf",
	"core.checkroundtripencoding", "core.quotepath", "core.excludesfile", "core.attributesfile", "core.sparsecheckout", "core.sparsecheckoutcone",
	"core.protecthfs", "core.protectntfs", "diff.ignoresubmodules", "index.sparse",
}

// sharedSections are sections of which every setting is taken: filters change what a
// file's content is to git.
var sharedSections = []string{"filter.", "status.", "user."}

// contentKeys are settings that a person has for all of their repositories, and that change
// what a file's content is to git. Without them git would call every file modified that it
// checked out for that person with other line ends, or through a filter such as that of Git LFS.
var contentKeys = []string{"core.autocrlf", "core.eol", "core.safecrlf", "core.checkroundtripencoding"}

// isTaken reports whether a setting of a scope is taken into a private repository.
func isTaken(scope, key string) bool {
	switch scope {
	case "local", "worktree":
		return isShared(key)
	case "system", "global":
		return slices.Contains(contentKeys, key) || strings.HasPrefix(key, "filter.")
	}
	return false
}

func isShared(key string) bool {
	isSection := func(section string) bool { return strings.HasPrefix(key, section) }
	return slices.Contains(sharedKeys, key) || slices.ContainsFunc(sharedSections, isSection) ||
		strings.HasPrefix(key, "submodule.") && strings.HasSuffix(key, ".ignore")
}

// config is the configuration of a private repository.
func (r *repository) config(ctx context.Context) (string, error) {
	all, err := r.ask(ctx, "config", "--list", "--includes", "--show-scope", "-z")
	if err != nil {
		return "", err
	}
	version := 0
	var b strings.Builder
	if r.format != "sha1" {
		version = 1
		setting(&b, "extensions.objectformat", r.format)
	}
	setting(&b, "core.repositoryformatversion", fmt.Sprint(version))
	setting(&b, "core.bare", "false")
	setting(&b, "core.logallrefupdates", "true")
	// Nothing that git starts by itself shall outlast the command that it ran for.
	setting(&b, "gc.auto", "0")
	setting(&b, "maintenance.auto", "false")
	fields := strings.Split(all, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, set := strings.Cut(fields[i+1], "\n")
		if !isTaken(fields[i], key) {
			continue
		}
		if !set {
			value = "true"
		}
		setting(&b, key, value)
	}
	return b.String(), nil
}

// setting writes one line of configuration, in a section of its own.
func setting(b *strings.Builder, key, value string) {
	section, rest, _ := strings.Cut(key, ".")
	name := rest
	if last := strings.LastIndexByte(rest, '.'); last >= 0 {
		sub := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(rest[:last])
		section, name = fmt.Sprintf(`%s "%s"`, section, sub), rest[last+1:]
	}
	value = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(value)
	fmt.Fprintf(b, "[%s]\n\t%s = \"%s\"\n", section, name, value)
}
