package hook

import (
	"slices"
	"strings"

	"lockkeeper/internal/git"
)

// Git is asked about each command before the first one runs. So an answer is right only if the
// earlier commands do not move the commits that it is about.

// moves notes the commits that a git command moves for later commands: remote-tracking branches, or
// local references.
func (r *reader) moves(dir, act string, args []string) {
	w := noValues.read(args)
	switch act {
	case "fetch":
		if fetch := fetchOptions.read(args); fetch.known && !slices.ContainsFunc(fetch.all(), func(o string) bool { return o == "" || strings.ContainsAny(o, ":+") }) {
			r.plan.fetches = append(r.plan.fetches, git.Fetch{Dir: dir, Args: args})
			return
		}
		r.plan.moved = append(r.plan.moved, anywhere)
	case "branch":
		if w.has("-f", "--force", "-m", "-M", "--move", "-C", "-c", "--copy") {
			r.plan.moved = append(r.plan.moved, anywhere)
		}
	case "tag":
		if w.has("-f", "--force") {
			r.plan.moved = append(r.plan.moved, anywhere)
		}
	case "update-ref", "replace", "fast-import", "symbolic-ref":
		r.plan.moved = append(r.plan.moved, anywhere)
	case "stash":
		r.plan.restashed = r.plan.restashed || len(w.operands) > 0 && slices.Contains([]string{"store", "drop", "pop", "branch", "clear"}, w.operands[0])
	case "push":
		if slices.Contains(w.operands, ".") {
			r.plan.moved = append(r.plan.moved, anywhere)
		}
	case "commit", "merge", "rebase", "pull", "cherry-pick", "revert", "am", "reset", "checkout", "switch":
		r.plan.moved = append(r.plan.moved, topOf(dir))
	}
}

// fetchOptions are the options of git fetch with which the hook may fetch by itself.
const fetchOptions allowed = "-q -v -p -t -a --quiet --verbose --prune --all --tags --no-tags --progress --no-progress"

// asked returns what to ask git about a command that runs after the commands read so far. Earlier
// commands in the same work tree add nothing to what a later command changes.
func (r *reader) asked(dir, act string, args []string) *git.Asked {
	a := asks(act, args)
	if a != nil && act == "stash" && r.plan.restashed && len(a.Operands) > 0 && slices.Contains([]string{"pop", "apply", "branch"}, a.Operands[0]) {
		return nil // it is another stash by then
	}
	if a == nil || slices.ContainsFunc(r.plan.moved, func(in string) bool { return in == anywhere || in != topOf(dir) }) && slices.Contains(mergers, act) {
		return nil
	}
	if slices.Contains(mergers, act) {
		a.After = r.plan.fetches
	}
	return a
}

// mergers are the git commands whose effect depends on another commit.
var mergers = []string{"merge", "rebase", "pull", "cherry-pick", "revert", "reset"}
