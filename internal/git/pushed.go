package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A PushedChange is a path that a commit changes.
type PushedChange struct {
	Commit string
	At     time.Time // time of the commit
	Path   string    // relative to the root
}

// pushDepth is how many commits of a push are read, the newest first.
const pushDepth = 2000

// Pushed lists the changes of the commits that a push sends, from the lines that git gives a
// pre-push hook: local ref, local commit, remote ref, remote commit.
func (g *WorkTree) Pushed(ctx context.Context, lines string) (list []PushedChange, err error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(lines) {
		parts := strings.Fields(line)
		if len(parts) != 4 || strings.Trim(parts[1], "0") == "" { // a deletion sends nothing
			continue
		}
		known := []string{"--not", "--remotes"}
		if strings.Trim(parts[3], "0") != "" {
			if _, err := g.run(ctx, "cat-file", "-e", parts[3]); err == nil {
				known = []string{"--not", parts[3]}
			}
		}
		some, err := g.changes(ctx, top, append([]string{parts[1]}, known...)...)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// Committed lists the changes of the commits that one commit has in its history and another has not.
func (g *WorkTree) Committed(ctx context.Context, from, to string) ([]PushedChange, error) {
	top, err := g.top(ctx)
	if err != nil {
		return nil, err
	}
	return g.changes(ctx, top, to, "--not", from)
}

// changes lists the changes of the newest commits in a range.
func (g *WorkTree) changes(ctx context.Context, top string, commits ...string) (list []PushedChange, err error) {
	args := append([]string{"log", "-z", "--no-show-signature", "--no-renames", "--no-ext-diff", "--name-only", fmt.Sprintf("--max-count=%d", pushDepth), "--format=%x00%H %ct"}, commits...)
	out, err := g.run(ctx, args...)
	if err != nil {
		return nil, err
	}
	var at PushedChange
	for field := range strings.SplitSeq(out, "\x00") {
		field = strings.TrimPrefix(field, "\n")
		hash, when, isCommit := strings.Cut(field, " ")
		if seconds, err := strconv.ParseInt(strings.TrimSpace(when), 10, 64); isCommit && isHash(hash) && err == nil {
			at = PushedChange{Commit: hash, At: time.Unix(seconds, 0)}
			continue
		}
		rel, err := filepath.Rel(g.root, filepath.Join(top, field))
		if field != "" && err == nil && filepath.IsLocal(rel) {
			at.Path = filepath.ToSlash(rel)
			list = append(list, at)
		}
	}
	return list, nil
}
