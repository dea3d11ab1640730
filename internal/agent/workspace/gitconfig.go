package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper/internal/git/gitcmd"
)

// sharedKeys are settings of a repository that affect git status or the author of commits.
// A private repository gets no others, in particular no remotes, hooks or work tree.
var sharedKeys = []string{
	"core.filemode", "core.ignorecase", "core.precomposeunicode", "core.symlinks", "core.autocrlf", "core.eol", "core.safecrlf",
	"core.checkroundtripencoding", "core.quotepath", "core.excludesfile", "core.attributesfile", "core.sparsecheckout", "core.sparsecheckoutcone",
	"core.protecthfs", "core.protectntfs", "diff.ignoresubmodules", "index.sparse",
}

// sharedSections are sections of which all settings are copied. Filters change the content
// that git sees.
var sharedSections = []string{"filter.", "status.", "user."}

// contentKeys are a person's settings for all repositories that change the content that git sees.
// Without them git would report files as modified if it checked them out with other line ends.
var contentKeys = []string{"core.autocrlf", "core.eol", "core.safecrlf", "core.checkroundtripencoding"}

// isTaken reports whether a setting of a scope is copied into a private repository.
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

// config returns the configuration of a private repository.
func (r *repository) config(ctx context.Context) (string, error) {
	all, err := r.git().Line(ctx, "config", "--list", "--includes", "--show-scope", "-z")
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
	// Git must not start background processes that outlive its command.
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

// setting writes one setting in its own section.
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

// Env returns the environment for commands in the workspace. It removes variables that point
// git or a shell to another directory, and stops git from searching for a repository in a
// parent directory.
func (w *Workspace) Env(environ []string) []string {
	return append(withoutPlace(environ), "GIT_CEILING_DIRECTORIES="+w.dir, "PWD="+w.Dir())
}

// configVariables configure one git command, or limit its search for a repository. They were
// meant for the caller.
var configVariables = []string{"GIT_CEILING_DIRECTORIES", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}

func withoutPlace(environ []string) []string {
	return slices.DeleteFunc(gitcmd.Outside(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(configVariables, name) || strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
	})
}

// gitQuote quotes a path as git does in its files.
func gitQuote(path string) string {
	var b strings.Builder
	quoted := strings.HasPrefix(path, "#")
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
			quoted = true
		case c < ' ' || c >= 0x7f:
			b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
			quoted = true
		default:
			b.WriteByte(c)
		}
	}
	if !quoted {
		return path
	}
	return `"` + b.String() + `"`
}

func abs(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
