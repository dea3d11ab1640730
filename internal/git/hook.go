package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/encoding/shellword"
)

// hookMark identifies a hook that InstallHook wrote.
const hookMark = "# Installed by `lockkeeper init --git-hook`, which also renews it."

// InstallHook installs a pre-commit hook that refuses commits of uncovered changes. It returns
// the path of the hook, or "" if the hook was up to date. The hook runs program if lockkeeper is
// not in PATH. InstallHook does not change another hook. Git runs the hook in all work trees of
// the repository.
func InstallHook(ctx context.Context, tree *WorkTree, program string) (string, error) {
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
	check := hookCheck(below)
	path := filepath.Join(dir, "pre-commit")
	old, err := readHook(path)
	switch {
	case err != nil:
		return "", err
	case old != "" && !strings.Contains(old, hookMark):
		return "", &lockkeeper.RefusedError{Act: "init --git-hook", Reason: path + " is another hook, which stays unchanged",
			Next: "add this line to it: lockkeeper " + check + " || exit 1"}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	script := "#!/bin/sh\n" + hookMark + "\n" +
		"# It refuses a commit of changes that no lock covers.\n" +
		"program=lockkeeper\n" +
		"command -v lockkeeper >/dev/null 2>&1 || program=" + shellword.Quote(program) + "\n" +
		"exec \"$program\" " + check + "\n"
	if info, err := os.Stat(path); err == nil && old == script && info.Mode().Perm()&0o100 != 0 {
		return "", nil
	}
	if err := durable.WriteFile(ctx, path, []byte(script), 0o755); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o755) // WriteFile keeps the mode of an existing file
}

// hookCheck returns the command of the hook, which runs at the top of the work tree.
func hookCheck(below string) string {
	if below == "." {
		return "gate changes --hook"
	}
	return "gate changes --hook --dir " + shellword.Quote(below)
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
		return "empty", nil // not a hook of Lockkeeper
	}
	return string(text), err
}

// HasHook reports whether a pre-commit hook refuses commits of uncovered changes.
func HasHook(ctx context.Context, tree *WorkTree) (bool, error) {
	top, err := tree.top(ctx)
	if err != nil {
		return false, err
	}
	dir, err := tree.hooks(ctx, top)
	if err != nil {
		return false, err
	}
	text, err := readHook(filepath.Join(dir, "pre-commit"))
	return strings.Contains(text, hookMark) || strings.Contains(text, "gate changes --hook"), err
}
