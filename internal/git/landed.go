package git

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"lockkeeper"
)

// Has reports whether a commit that HEAD contains gave a path this version. Commits that are older
// than since do not count. It compares the content, not the mode.
func (r *Repo) Has(ctx context.Context, path string, v lockkeeper.Version, since time.Time) (bool, error) {
	head, err := r.git.Line(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
	if err != nil || head == "" {
		return false, nil // there is no commit yet
	}
	// Times of commits are whole seconds.
	out, err := r.git.Output(ctx, "", "log", "-m", "--format=", "--raw", "--no-abbrev", "--no-renames",
		fmt.Sprintf("--since=%d", since.Unix()-1), head, "--", literal+r.prefix+path)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(out) {
		entry := strings.Fields(line) // modes before and after, ids before and after, status and path
		if len(entry) < 5 {
			continue
		}
		gone := strings.Trim(entry[3], "0") == ""
		if gone || !v.Exists() {
			if gone && !v.Exists() {
				return true, nil
			}
			continue
		}
		sum := sha256.New()
		if err := r.git.Run(ctx, nil, sum, "cat-file", "blob", entry[3]); err != nil {
			return false, err
		}
		if [32]byte(sum.Sum(nil)) == v.Sum {
			return true, nil
		}
	}
	return false, nil
}

// HasUpstream reports whether git pull works without arguments on the current branch.
func (r *Repo) HasUpstream(ctx context.Context) bool {
	_, err := r.git.Line(ctx, "rev-parse", "--verify", "--quiet", "@{upstream}")
	return err == nil
}
