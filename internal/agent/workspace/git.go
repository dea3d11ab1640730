package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/git/gitcmd"
)

// A repository is a repository of the shared tree. Git runs only there and only to read,
// never in a workspace, where an agent may have configured commands for it to run.
type repository struct {
	work   string // the work tree of the repository
	gitDir string // the directory of this work tree's index and HEAD
	common string // the directory that all its work trees share
	format string // the format of its object ids
}

// git returns the command that runs git in the work tree. Git does not search for a
// repository in a parent directory, and does not fetch missing objects, which could run a
// configured command.
func (r *repository) git() gitcmd.Command {
	return gitcmd.Command{Dir: r.work, Settings: []string{"-c", "core.fsmonitor=false"},
		Env: append(withoutPlace(os.Environ()), "GIT_DIR="+filepath.Join(r.work, gitName), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")}
}

func openRepository(ctx context.Context, work string) (*repository, error) {
	r := &repository{work: work}
	answer, err := r.git().Line(ctx, "rev-parse", "--git-dir", "--git-common-dir", "--show-object-format")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(answer, "\n")
	if len(lines) != 3 {
		return nil, &lockkeeper.InputError{Field: "git repository", Value: work, Reason: "its path has a newline in it", Next: "move it"}
	}
	r.gitDir, r.common, r.format = abs(work, lines[0]), abs(work, lines[1]), lines[2]
	return r, nil
}

// A position is the state of a repository that a commit, checkout or add changes.
type position struct {
	head   string // the text of HEAD
	commit string // empty if there is no commit yet
	refs   string // the refs, in the format of packed-refs
	index  fileStat
}

func (r *repository) position(ctx context.Context) (p position, err error) {
	all, err := r.git().Line(ctx, "for-each-ref", "--format=%(HEAD)%(objectname) %(refname)")
	if err != nil {
		return p, err
	}
	var refs strings.Builder
	for line := range strings.Lines(all) { // a star marks the current branch, a space the others
		if current, ok := strings.CutPrefix(line, "*"); ok {
			commit, branch, _ := strings.Cut(strings.TrimSuffix(current, "\n"), " ")
			p.head, p.commit = "ref: "+branch, commit
		}
		refs.WriteString(line[1:])
	}
	p.refs = refs.String()
	if p.head == "" {
		if err := r.offBranch(ctx, &p); err != nil {
			return p, err
		}
	}
	p.index, err = statAt(unix.AT_FDCWD, filepath.Join(r.gitDir, "index"))
	if isGone(err) {
		err = nil
	}
	return p, err
}

// offBranch sets HEAD if it is detached, or on a branch without a commit.
func (r *repository) offBranch(ctx context.Context, p *position) error {
	branch, err := r.git().Line(ctx, "symbolic-ref", "-q", "HEAD")
	var refused *gitcmd.Error
	switch {
	case err == nil:
		p.head = "ref: " + branch
		return nil
	case !errors.As(err, &refused):
		return err
	}
	p.commit, err = r.git().Line(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	p.head = p.commit
	return err
}

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
	// The files of the tree are copies, so only their times and sizes are those in the index.
	setting(&b, "core.checkstat", "minimal")
	setting(&b, "core.trustctime", "false")
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
