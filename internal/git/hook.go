package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/encoding/shellword"
)

// hookMark identifies a hook, or a line in one, that InstallHook wrote.
const hookMark = "lockkeeper init --git-hook"

// A Hook is a hook of git that asks Lockkeeper.
type Hook struct {
	Name string // pre-commit or pre-push
	Held bool   // refuse only what others hold, not also changes that no lock covers
}

// InstallHook installs a hook that refuses commits, or pushes, of the changes of others. It returns
// the path of the hook, or "" if the hook was up to date. The hook runs program if lockkeeper is
// not in PATH. Git runs the hook in all work trees of the repository.
//
// A hook that exists keeps running after ours: one in the git directory under the name
// NAME.chained, one in the work tree with a line of ours in it. Hooks that a manager writes
// again stay unchanged.
func InstallHook(ctx context.Context, tree *WorkTree, h Hook, program string) (string, error) {
	top, err := tree.top(ctx)
	if err != nil {
		return "", err
	}
	dir, err := tree.hooks(ctx, top)
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(top, tree.root)
	if err != nil {
		return "", err
	}
	shared := isShared(top, dir)
	husky := shared && filepath.Base(dir) == "_"
	if husky { // husky overwrites the hooks in _; they run the hooks in the directory above
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, h.Name)
	if legacy := path + ".legacy"; isOurs(legacy) { // pre-commit renamed our hook to this name, and runs it
		path = legacy
	}
	old, err := readHook(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	script := h.script(below, program)
	foreign := old != "" && !strings.HasPrefix(old, hookHead)
	switch {
	case foreign && strings.Contains(old, "lefthook"):
		return "", h.refused(path, "lefthook writes it again", "add this command to "+h.Name+" in lefthook.yml: lockkeeper "+h.check(below))
	case foreign && shared:
		if script, err = h.within(path, old, below); err != nil {
			return "", err
		}
	case foreign:
		if _, err := os.Lstat(path + chained); err == nil {
			return "", h.refused(path, "another hook, and so is "+path+chained, "remove one of them, or add this line to the first: lockkeeper "+h.check(below)+" || exit 1")
		}
		if err := os.Rename(path, path+chained); err != nil {
			return "", err
		}
	}
	mustRun := !husky || !foreign // husky runs the hook of the repository with sh, and needs no permission
	if info, err := os.Stat(path); err == nil && old == script && (!mustRun || info.Mode().Perm()&0o100 != 0) {
		return "", nil
	}
	if err := durable.WriteFile(ctx, path, []byte(script), 0o755); err != nil || !mustRun {
		return path, err
	}
	return path, os.Chmod(path, 0o755) // WriteFile keeps the mode of an existing file
}

const (
	told     = ".told"    // ends the name of a file that a hook makes when it has said that its program is gone
	chained  = ".chained" // ends the name of a hook that ours runs
	hookHead = "#!/bin/sh\n# Installed by `" + hookMark
)

func (h Hook) refused(path, why, next string) error {
	return &lockkeeper.RefusedError{Act: "init --git-hook", Reason: path + " is not ours and stays unchanged: " + why, Next: next}
}

// script returns the text of a hook of our own. Git gives a pre-push hook the pushed refs on
// standard input, which the chained hook needs too.
func (h Hook) script(below, program string) string {
	text := hookHead + "`, which also renews it.\n" +
		"program=lockkeeper\n" +
		"command -v lockkeeper >/dev/null 2>&1 || program=" + shellword.Quote(program) + "\n" +
		"next=$(dirname \"$0\")/" + h.Name + chained + "\n" +
		// Without the program nothing can be checked. People must still be able to commit.
		"command -v \"$program\" >/dev/null 2>&1 || {\n" +
		"  [ -e \"$0" + told + "\" ] || echo \"lockkeeper is not installed any more, so locks are not checked; to remove this hook: rm '$0'\" >&2\n" +
		"  : 2>/dev/null >\"$0" + told + "\"\n" +
		"  program=true\n" +
		"}\n"
	if h.Name == "pre-push" {
		return text + "refs=$(cat; echo .) # without the dot, $() would remove the last line break\n" +
			"printf %s \"${refs%.}\" | \"$program\" " + h.check(below) + " || exit\n" +
			"[ ! -x \"$next\" ] || printf %s \"${refs%.}\" | \"$next\" \"$@\"\n"
	}
	return text + "\"$program\" " + h.check(below) + " || exit\n" +
		"[ ! -x \"$next\" ] || exec \"$next\" \"$@\"\n"
}

// within returns the text of another hook with a line of ours. It runs only where lockkeeper is
// installed, because other people use the file too.
func (h Hook) within(path, old, below string) (string, error) {
	head, rest, _ := strings.Cut(old, "\n")
	interpreter := strings.Fields(strings.TrimPrefix(head, "#!"))
	isShell := strings.HasPrefix(head, "#!") && len(interpreter) > 0 && slices.Contains([]string{"sh", "bash", "dash", "zsh"}, filepath.Base(interpreter[len(interpreter)-1]))
	line := "! command -v lockkeeper >/dev/null 2>&1 || lockkeeper " + h.check(below) + " || exit 1 # " + hookMark + "\n"
	switch {
	case strings.Contains(old, "# "+hookMark+"\n"):
		var lines []string
		for l := range strings.Lines(old) {
			if strings.HasSuffix(l, "# "+hookMark+"\n") {
				l = line
			}
			lines = append(lines, l)
		}
		return strings.Join(lines, ""), nil
	case h.Name == "pre-push": // our line would consume the refs on standard input
	case isShell:
		return head + "\n" + line + rest, nil
	case !strings.HasPrefix(head, "#!") && filepath.Base(filepath.Dir(path)) == ".husky": // husky runs such a hook with sh
		return line + old, nil
	}
	return "", h.refused(path, "it is not a shell script, or reads its input", "add this line to it: lockkeeper "+h.check(below)+" || exit 1")
}

// check returns the command of the hook, which runs at the top of the work tree.
func (h Hook) check(below string) string {
	text := "gate changes --hook"
	switch {
	case h.Name == "pre-push":
		text = "gate pushed"
	case h.Held:
		text += " --held"
	}
	if below != "." {
		text += " --dir " + shellword.Quote(below)
	}
	return text
}

// isShared reports whether a directory is in the work tree, where other people see it.
func isShared(top, dir string) bool {
	rel, err := filepath.Rel(top, dir)
	return err == nil && filepath.IsLocal(rel) && rel != lockkeeper.GitTarget && !strings.HasPrefix(rel, lockkeeper.GitTarget+"/")
}

func isOurs(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(text), hookMark)
}

// hooks returns the directory of the repository's own hooks.
func (g *WorkTree) hooks(ctx context.Context, top string) (string, error) {
	own := func(args ...string) (string, error) {
		out, err := g.run(ctx, append([]string{"rev-parse"}, args...)...)
		path := strings.TrimSuffix(out, "\n")
		if err == nil && !filepath.IsAbs(path) {
			path = filepath.Join(g.git.Dir, path)
		}
		return path, err
	}
	dir, err := own("--git-path", "hooks")
	if err != nil {
		return "", err
	}
	common, err := own("--git-common-dir")
	if err != nil {
		return "", err
	}
	for _, parent := range []string{common, top} {
		if rel, err := filepath.Rel(parent, dir); err == nil && filepath.IsLocal(rel) {
			return dir, nil
		}
	}
	return "", &lockkeeper.RefusedError{Act: "init --git-hook", Reason: "core.hooksPath is " + dir + ", outside this repository, where other repositories may use it too",
		Next: "add a line like this to its pre-commit: lockkeeper gate changes --hook || exit 1"}
}

// readHook returns the text of the hook, or "" if there is no hook. For anything other than a
// regular file it returns some text without hookMark.
func readHook(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return info.Mode().String(), nil
	}
	text, err := os.ReadFile(path)
	if len(text) == 0 && err == nil {
		return "empty", nil // the file is not a hook of Lockkeeper
	}
	return string(text), err
}

// HasHook reports whether a pre-commit hook refuses commits of changes of others.
func HasHook(ctx context.Context, tree *WorkTree) (bool, error) {
	top, err := tree.top(ctx)
	if err != nil {
		return false, err
	}
	dir, err := tree.hooks(ctx, top)
	if err != nil {
		return false, err
	}
	for _, path := range []string{filepath.Join(dir, "pre-commit"), filepath.Join(dir, "pre-commit.legacy"), filepath.Join(filepath.Dir(dir), "pre-commit")} {
		text, err := readHook(path)
		if err != nil {
			return false, err
		}
		if strings.Contains(text, hookMark) || strings.Contains(text, "gate changes --hook") {
			return true, nil
		}
	}
	return false, nil
}
