package git

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A version is the content of a path in the index or in a commit. The zero value means that the
// path is missing.
type version struct{ mode, hash string }

// A committedPath is the change of a path by one of Lockkeeper's commits.
type committedPath struct {
	before, after version
	at            time.Time
}

// repairFor is how long after a commit RepairIndex checks its paths.
const repairFor = time.Minute

// remember records the paths of a commit for RepairIndex.
func (r *Repo) remember(ctx context.Context, p *plan, hash string) error {
	after, err := r.inCommit(ctx, hash, p.paths)
	if err != nil {
		return err
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recent == nil {
		r.recent = map[string]committedPath{}
	}
	maps.DeleteFunc(r.recent, func(_ string, c committedPath) bool { return now.Sub(c.at) > repairFor })
	for _, at := range p.paths {
		r.recent[at] = committedPath{before: p.known[at].version, after: after[at].version, at: now}
	}
	return nil
}

// RepairIndex restores index entries of recent commits that another git overwrote.
//
// A person's git commit with paths reads the index, then locks it, and writes the entries that it
// read. If a commit of Lockkeeper came in between, the index is again as it was before that
// commit. The person's next git commit would revert it. Entries that differ in any other way were
// staged by the person and stay.
func (r *Repo) RepairIndex(ctx context.Context) error {
	restore, err := r.overwritten(ctx)
	if err != nil || len(restore) == 0 {
		return err
	}
	_, err = r.locked(ctx, func() error { return nil }, list(restore), "update-index", "-z", "--index-info")
	return err
}

// NeedsRepair reports whether RepairIndex has something to restore.
func (r *Repo) NeedsRepair(ctx context.Context) (bool, error) {
	restore, err := r.overwritten(ctx)
	return len(restore) > 0, err
}

// overwritten lists the entries that RepairIndex restores, as input of git update-index.
func (r *Repo) overwritten(ctx context.Context) (restore []string, err error) {
	r.mu.Lock()
	recent := maps.Clone(r.recent)
	r.mu.Unlock()
	if len(recent) == 0 {
		return nil, nil
	}
	if err := r.unlocked(ctx, r.patience); err != nil {
		return nil, err
	}
	for paths := range chunks(slices.Sorted(maps.Keys(recent))) {
		args := slices.Concat([]string{"diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "--ita-invisible-in-index", "-z", "HEAD", "--"}, prefixed(literal, paths))
		out, err := r.git.Output(ctx, "", args...)
		if err != nil {
			return nil, err
		}
		lines := fields(out)
		for n := 0; n+1 < len(lines); n += 2 {
			head, index, ok := versions(lines[n])
			at := lines[n+1]
			if c := recent[at]; ok && head == c.after && index == c.before {
				restore = append(restore, c.after.line(at))
			}
		}
	}
	return restore, nil
}

// versions parses a line of git diff-index: ":<mode> <mode> <hash> <hash> <status>". It
// fails for unmerged paths.
func versions(line string) (from, to version, ok bool) {
	parts := strings.Fields(strings.TrimPrefix(line, ":"))
	if len(parts) != 5 || parts[4] == "U" {
		return from, to, false
	}
	return versionOf(parts[0], parts[2]), versionOf(parts[1], parts[3]), true
}

func versionOf(mode, hash string) version {
	if strings.Trim(mode, "0") == "" {
		return version{}
	}
	return version{mode, hash}
}

// line writes v as input of git update-index --index-info.
func (v version) line(at string) string {
	if v == (version{}) {
		return "0 " + strings.Repeat("0", 40) + "\t" + at
	}
	return fmt.Sprintf("%s %s 0\t%s", v.mode, v.hash, at)
}
