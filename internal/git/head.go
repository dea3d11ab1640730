package git

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper"
)

// Head returns the commit of HEAD in the work tree around a directory, or "" if there is none. It
// reads git's files, and runs git only if the refs are stored in another way.
func Head(ctx context.Context, dir string, env []string) (string, error) {
	r, err := around(dir, env)
	if r == nil || err != nil {
		return "", err
	}
	s, err := r.head(ctx)
	return s.Head, err
}

// around returns the repository of the work tree around a directory, or nil.
func around(dir string, env []string) (*Repo, error) {
	for top := dir; ; top = filepath.Dir(top) {
		at := filepath.Join(top, lockkeeper.GitTarget)
		info, err := os.Lstat(at)
		switch {
		case err != nil && !isGone(err):
			return nil, err
		case err != nil && top == filepath.Dir(top):
			return nil, nil
		case err != nil:
			continue
		case !info.IsDir(): // a linked work tree or a submodule has a file here
			text, err := os.ReadFile(at)
			if err != nil {
				return nil, err
			}
			if at = strings.TrimPrefix(strings.TrimSpace(string(text)), "gitdir: "); !filepath.IsAbs(at) {
				at = filepath.Join(top, at)
			}
		}
		r := &Repo{root: dir, top: top, dir: at, common: at, git: newGit(top, env)}
		if text, err := os.ReadFile(filepath.Join(at, "commondir")); err == nil {
			if r.common = strings.TrimSpace(string(text)); !filepath.IsAbs(r.common) {
				r.common = filepath.Join(at, r.common)
			}
		}
		return r, nil
	}
}

// packed returns the commit of a ref that git has packed, or "".
func (r *Repo) packed(ref string) string {
	f, err := os.Open(filepath.Join(r.common, "packed-refs"))
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if hash, name, _ := strings.Cut(lines.Text(), " "); name == ref && isHash(hash) {
			return hash
		}
	}
	return ""
}
