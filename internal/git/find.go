package git

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// findDepth is how many commits Find reads.
const findDepth = 2000

// Find returns the newest commit in the history of HEAD with a trailer, or "" if none of the last
// commits has it. A process needs it after a crash between a commit and its record. The line may
// be in any paragraph except the first, because hooks add paragraphs. Commit writes it only among
// the trailers.
func (r *Repo) Find(ctx context.Context, key, value string) (string, error) {
	wanted := Trailer{Key: key, Value: value}
	if err := wanted.check(); err != nil {
		return "", err
	}
	return r.find(ctx, func(line string) bool { return line == wanted.line() })
}

// Last returns the newest commit in the history of HEAD with a trailer of this key, as Find does.
func (r *Repo) Last(ctx context.Context, key string) (string, error) {
	return r.find(ctx, func(line string) bool { return strings.HasPrefix(line, key+": ") })
}

func (r *Repo) find(ctx context.Context, wanted func(line string) bool) (string, error) {
	s, err := r.State(ctx)
	if err != nil || s.Head == "" {
		return "", err
	}
	out, err := r.git.Output(ctx, "", "log", "-z", "--no-show-signature", "--no-color", "--encoding=UTF-8", fmt.Sprintf("--max-count=%d", findDepth),
		"--format=%H%n%B", s.Head)
	if err != nil {
		return "", fmt.Errorf("search for a commit in the history of %s: %w", r.top, err)
	}
	for _, commit := range fields(out) {
		hash, message, _ := strings.Cut(commit, "\n")
		_, rest, _ := strings.Cut(message, "\n")
		if slices.ContainsFunc(strings.Split(rest, "\n"), wanted) {
			return hash, nil
		}
	}
	return "", nil
}

// Changed lists the files below the root in which two commits differ.
func (r *Repo) Changed(ctx context.Context, from, to string) ([]string, error) {
	out, err := r.git.Output(ctx, "", "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules", "--relative", from, to, "--")
	if err != nil {
		return nil, fmt.Errorf("compare the commits %.12s and %.12s of %s: %w", from, to, r.top, err)
	}
	return fields(out), nil
}
