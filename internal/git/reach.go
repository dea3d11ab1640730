package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Reach says what a git command would change in its work tree.
type Reach struct {
	Files []string // absolute; the command changes nothing else
	All   bool     // the command may change any file, or the history or branch that others build on
}

// reaches returns how to ask git what a subcommand would change, by its operands and pathspecs.
// A subcommand without an entry may change everything.
func reaches() map[string]func(*WorkTree, context.Context, Asked) (Reach, error) {
	return map[string]func(*WorkTree, context.Context, Asked) (Reach, error){
		"switch": (*WorkTree).switches, "checkout": (*WorkTree).switches,
		"merge": (*WorkTree).forwards, "rebase": (*WorkTree).rebases, "pull": (*WorkTree).pulls,
		"cherry-pick": (*WorkTree).repeats, "revert": (*WorkTree).repeats,
		"reset": (*WorkTree).resets, "stash": (*WorkTree).stashes, "clean": (*WorkTree).cleans,
		"submodule update": (*WorkTree).updates,
		"branch":           (*WorkTree).renames, "worktree": (*WorkTree).checksOut,
	}
}

// Asked is a git command, split into its words.
type Asked struct {
	Act      string
	Options  []string
	Operands []string
	Paths    []string // pathspecs
	After    []Fetch  // what the command before this one fetches
}

// A Fetch is a git fetch with its options and operands.
type Fetch struct {
	Dir  string
	Args []string
}

func (a Asked) has(names ...string) bool {
	return slices.ContainsFunc(a.Options, func(o string) bool { return slices.Contains(names, o) })
}

// Reach asks git what a command would change. It fetches what pull and the commands before would
// fetch, and changes nothing else.
func (g *WorkTree) Reach(ctx context.Context, a Asked) (Reach, error) {
	ask, known := reaches()[a.Act]
	if !known {
		return Reach{All: true}, nil
	}
	for _, f := range a.After {
		if err := NewWorkTree(f.Dir, f.Dir, g.git.Env).fetch(ctx, f.Args...); err != nil {
			return Reach{All: true}, ctx.Err()
		}
	}
	r, err := ask(g, ctx, a)
	if err != nil && ctx.Err() == nil { // git does not know a word, or there is no upstream: the command may mean something else
		return Reach{All: true}, nil
	}
	return r, err
}

// switches finds that a command changes no file, because it names the current branch or none.
func (g *WorkTree) switches(ctx context.Context, a Asked) (Reach, error) {
	if len(a.Paths) > 0 || len(a.Operands) > 1 || a.has("--detach", "-d") {
		return Reach{All: true}, nil
	}
	if len(a.Operands) == 0 {
		return Reach{All: a.Act != "checkout"}, nil
	}
	current, err := g.run(ctx, "symbolic-ref", "--short", "HEAD")
	return Reach{All: strings.TrimSpace(current) != a.Operands[0]}, err
}

// renames finds a rename of another branch than the current one.
func (g *WorkTree) renames(ctx context.Context, a Asked) (Reach, error) {
	if len(a.Operands) != 2 {
		return Reach{All: true}, nil
	}
	return g.notCurrent(ctx, a.Operands[0])
}

// checksOut finds a new work tree of another branch than the current one.
func (g *WorkTree) checksOut(ctx context.Context, a Asked) (Reach, error) {
	return g.notCurrent(ctx, strings.TrimPrefix(a.Operands[len(a.Operands)-1], "refs/heads/"))
}

// notCurrent finds that a branch is not the current one.
func (g *WorkTree) notCurrent(ctx context.Context, branch string) (Reach, error) {
	current, err := g.run(ctx, "symbolic-ref", "--short", "HEAD")
	return Reach{All: strings.TrimSpace(current) == branch}, err
}

// forwards finds a merge of a commit that is merged already, or a fast-forward.
func (g *WorkTree) forwards(ctx context.Context, a Asked) (Reach, error) {
	to := "@{upstream}"
	switch len(a.Operands) {
	case 0:
	case 1:
		to = a.Operands[0]
	default:
		return Reach{All: true}, nil
	}
	for _, stashes := range []string{"merge.autoStash", "rebase.autoStash"} { // a stash takes all changes away for a moment
		if on, err := g.run(ctx, "config", "--type=bool", "--default=false", "--get", stashes); err != nil || strings.TrimSpace(on) == "true" {
			return Reach{All: true}, err
		}
	}
	common, err := g.run(ctx, "merge-base", "--", "HEAD", to)
	if err != nil {
		return Reach{}, err
	}
	head, err := g.run(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if err != nil {
		return Reach{}, err
	}
	other, err := g.run(ctx, "rev-parse", "--verify", "-q", to+"^{commit}")
	switch {
	case err != nil:
		return Reach{}, err
	case common == other: // the other commit is merged already
		return Reach{}, nil
	case common != head: // the pull makes a merge
		return Reach{All: true}, nil
	}
	return g.listed(ctx, "diff", "--name-only", "-z", "--no-renames", "HEAD", strings.TrimSpace(other))
}

// rebases finds a rebase onto a commit that the branch is based on already.
func (g *WorkTree) rebases(ctx context.Context, a Asked) (Reach, error) {
	r, err := g.forwards(ctx, a)
	if err != nil || r.All || len(r.Files) > 0 {
		return Reach{All: true}, err
	}
	onto := "@{upstream}"
	if len(a.Operands) == 1 {
		onto = a.Operands[0]
	}
	merges, err := g.run(ctx, "rev-list", "--merges", "-1", onto+"..HEAD", "--")
	return Reach{All: merges != ""}, err
}

// fetch runs git fetch, which does not ask for a password.
func (g *WorkTree) fetch(ctx context.Context, args ...string) error {
	_, err := g.run(ctx, append([]string{"-c", "core.askPass=true", "-c", "credential.interactive=false", "fetch", "-q"}, args...)...)
	return err
}

// updates finds that the submodule in this directory has the commit that its superproject names.
func (g *WorkTree) updates(ctx context.Context, _ Asked) (Reach, error) {
	above, err := g.run(ctx, "rev-parse", "--show-superproject-working-tree")
	if err != nil {
		return Reach{}, err
	}
	entry, err := g.run(ctx, "-C", strings.TrimSuffix(above, "\n"), "ls-files", "-s", "--", g.git.Dir)
	if err != nil {
		return Reach{}, err
	}
	head, err := g.run(ctx, "rev-parse", "HEAD")
	return Reach{All: !strings.Contains(entry, strings.TrimSpace(head))}, err
}

// pulls fetches, and then finds a fast-forward.
func (g *WorkTree) pulls(ctx context.Context, a Asked) (Reach, error) {
	if len(a.Operands) > 2 || slices.ContainsFunc(a.Operands, func(o string) bool { return strings.ContainsAny(o, ":+") }) {
		return Reach{All: true}, nil
	}
	if err := g.fetch(ctx, append([]string{"--end-of-options"}, a.Operands...)...); err != nil {
		return Reach{}, err
	}
	fetched, err := g.run(ctx, "rev-parse", "--git-path", "FETCH_HEAD")
	if err != nil {
		return Reach{}, err
	}
	fetched = strings.TrimSpace(fetched)
	if !filepath.IsAbs(fetched) {
		fetched = filepath.Join(g.git.Dir, fetched)
	}
	text, err := os.ReadFile(fetched)
	if err != nil {
		return Reach{}, err
	}
	var merged []string
	for line := range strings.Lines(string(text)) {
		if commit, rest, _ := strings.Cut(line, "\t"); !strings.HasPrefix(rest, "not-for-merge") {
			merged = append(merged, commit)
		}
	}
	if len(merged) != 1 {
		return Reach{All: true}, nil
	}
	return g.forwards(ctx, Asked{Operands: merged})
}

// repeats lists the files that a command changes which repeats or reverts one commit.
func (g *WorkTree) repeats(ctx context.Context, a Asked) (Reach, error) {
	switch {
	case a.has("--quit") && len(a.Operands) == 0:
		return Reach{}, nil
	case len(a.Operands) != 1 || strings.Contains(a.Operands[0], "..") || a.has("--abort", "--continue", "--skip"):
		return Reach{All: true}, nil
	}
	return g.listed(ctx, "diff-tree", "-r", "--root", "--no-commit-id", "--name-only", "-z", "--no-renames", "--end-of-options", a.Operands[0])
}

// resets lists the files that differ from the last commit, unless the branch would move.
func (g *WorkTree) resets(ctx context.Context, a Asked) (Reach, error) {
	if len(a.Paths) > 0 || len(a.Operands) > 1 {
		return Reach{All: true}, nil
	}
	if len(a.Operands) == 1 {
		head, err := g.run(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
		if err != nil {
			return Reach{}, err
		}
		to, err := g.run(ctx, "rev-parse", "--verify", "-q", "--end-of-options", a.Operands[0]+"^{commit}")
		if err != nil || head != to {
			return Reach{All: true}, err
		}
	}
	if a.has("--soft", "--keep") { // neither option changes a file if the branch stays
		return Reach{}, nil
	}
	if !a.has("--hard", "--merge") { // the command changes the index alone
		return g.listed(ctx, "diff", "--cached", "--name-only", "-z", "--no-renames", "HEAD")
	}
	return g.listed(ctx, "diff", "--name-only", "-z", "--no-renames", "HEAD")
}

// stashes lists the files that a stash takes away or brings back.
func (g *WorkTree) stashes(ctx context.Context, a Asked) (Reach, error) {
	act := "push"
	if len(a.Operands) > 0 {
		act = a.Operands[0]
	}
	switch act {
	case "list", "show", "create", "store":
		return Reach{}, nil
	case "push", "save":
		if act == "save" && len(a.Operands) > 1 { // the operands of save are a message
			a.Operands = nil
		}
		paths := append(slices.Clone(a.Operands[min(1, len(a.Operands)):]), a.Paths...)
		r, err := g.listed(ctx, append([]string{"diff", "--name-only", "-z", "--no-renames", "HEAD", "--"}, paths...)...)
		if err != nil || !a.has("-u", "--include-untracked", "-a", "--all") {
			return r, err
		}
		others := []string{"ls-files", "-z", "--full-name", "--others"}
		if !a.has("-a", "--all") {
			others = append(others, "--exclude-standard")
		}
		more, err := g.listed(ctx, append(append(others, "--"), paths...)...)
		r.Files = append(r.Files, more.Files...)
		return r, err
	case "pop", "apply":
		if len(a.Operands) > 2 {
			return Reach{All: true}, nil
		}
		return g.listed(ctx, append([]string{"stash", "show", "--include-untracked", "--name-only", "-z", "--no-renames"}, a.Operands[1:]...)...)
	}
	return Reach{All: true}, nil
}

// cleans lists the files that git would remove.
func (g *WorkTree) cleans(ctx context.Context, a Asked) (Reach, error) {
	args := append([]string{"-c", "core.quotePath=false", "clean", "--dry-run"}, slices.DeleteFunc(slices.Clone(a.Options), func(o string) bool { return o == "-q" || o == "--quiet" })...)
	out, err := g.run(ctx, append(append(append(args, a.Operands...), "--"), a.Paths...)...)
	if err != nil {
		return Reach{}, err
	}
	var r Reach
	for line := range strings.Lines(out) {
		name, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "Would remove ")
		switch {
		case !is:
		case strings.HasPrefix(name, `"`):
			return Reach{All: true}, nil
		default:
			r.Files = append(r.Files, g.git.Dir+"/"+strings.TrimSuffix(name, "/"))
		}
	}
	return r, nil
}

// listed returns the files that git lists, relative to the top of the work tree, each with a zero byte.
func (g *WorkTree) listed(ctx context.Context, args ...string) (r Reach, err error) {
	top, err := g.top(ctx)
	if err != nil {
		return r, err
	}
	out, err := g.run(ctx, args...)
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" {
			r.Files = append(r.Files, top+"/"+name)
		}
	}
	return r, err
}
