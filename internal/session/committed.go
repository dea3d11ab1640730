package session

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/git"
	"lockkeeper/internal/session/refusal"
)

// A Committed is a held file in a commit that its holder did not make.
type Committed struct {
	Path   string
	Commit string
	Holder refusal.Holder // the zero Holder: the session itself
	During bool           // a command of the session ran when the commit was made, and may have made it
}

// Head returns the commit of HEAD in the codebase, or "" if it is unknown.
func (b *Registry) Head(ctx context.Context) string {
	head, err := git.Head(ctx, b.app.Root.Dir(), os.Environ())
	if err != nil { // the repository is damaged, or being made
		return ""
	}
	return head
}

// commits lists the changes of the commits since a commit.
func (b *Registry) commits(ctx context.Context, from, to string) ([]git.PushedChange, error) {
	if from == "" || to == "" || from == to {
		return nil, nil
	}
	dir := b.app.Root.Dir()
	return git.NewWorkTree(dir, dir, os.Environ()).Committed(ctx, from, to)
}

// CommittedOfOthers lists files that others hold for writing and that were committed since a call
// began, and records them. A commit that its holder made is not listed. Another program may have
// made the others.
func (s *Session) CommittedOfOthers(ctx context.Context, c Call) (list []Committed, err error) {
	changes, err := s.registry.commits(ctx, c.Head, s.registry.Head(ctx))
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	in := map[string]git.PushedChange{}
	for _, x := range changes {
		if x.At.Unix() >= c.At/int64(time.Second) { // otherwise a switch of branches brought older commits
			in[s.registry.at(x.Path)] = x
		}
	}
	paths, err := s.registry.everHeld(ctx, slices.Sorted(maps.Keys(in)))
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	found, err := s.holders(ctx, paths)
	if err != nil {
		return nil, err
	}
	records, err := s.registry.records()
	if err != nil {
		return nil, err
	}
	for _, held := range found {
		x := in[s.registry.at(held.Path)]
		own := func(r record) bool { return r.GrantID == held.GrantID && r.committed(x) }
		if held.BlockingMode != lockkeeper.Write || x.At.Unix() < held.AcquiredAt.Unix() || slices.ContainsFunc(slices.Collect(maps.Values(records)), own) {
			continue
		}
		who, err := s.registry.Who(ctx, held)
		if err != nil {
			return nil, err
		}
		list = append(list, Committed{Path: held.Path, Commit: x.Commit, Holder: who})
	}
	return list, s.recordCommitted(ctx, list)
}

// CommittedMine lists files that the session holds and that others have committed since the last
// call.
func (s *Session) CommittedMine(ctx context.Context) (list []Committed, err error) {
	from := s.rec.Head
	if s.rec.GrantID == "" {
		s.rec.Head = ""
		return nil, nil
	}
	s.rec.Head = s.registry.Head(ctx)
	if from == "" || from == s.rec.Head {
		return nil, nil
	}
	held, err := s.held(ctx)
	if err != nil || held == nil {
		return nil, err
	}
	changes, err := s.registry.commits(ctx, from, s.rec.Head)
	for _, x := range changes {
		if x.At.Unix() >= held.AcquiredAt.Unix() && covers(held, x.Path) && !s.rec.committed(x) {
			list = append(list, Committed{Path: x.Path, Commit: x.Commit, During: s.rec.ranDuring(x, false)})
		}
	}
	return list, err
}

// Watch notes the commit after which commits of held files are reported.
func (s *Session) Watch(ctx context.Context) {
	if s.rec.Head == "" {
		s.rec.Head = s.registry.Head(ctx)
	}
}

// committed reports whether the session made a commit: with lockkeeper commit, or probably with a
// command of git that ran when the commit was made.
func (r *record) committed(x git.PushedChange) bool {
	return slices.Contains(r.Commits, x.Commit) || r.ranDuring(x, true)
}

// ranDuring reports whether a command of the session ran when a commit was made: any command, or
// one whose text mentions a program that commits.
func (r *record) ranDuring(x git.PushedChange, commits bool) bool {
	from, to := x.At.UnixNano(), x.At.Add(time.Second).UnixNano() // git stores times in seconds
	for _, c := range slices.Concat(r.Background, slices.Collect(maps.Values(r.Calls))) {
		if c.Command != "" && (!commits || mayCommit(c.Command)) && c.At < to {
			return true
		}
	}
	return slices.ContainsFunc(r.Ran, func(ran span) bool { return (!commits || ran.Git) && ran.From < to && from <= ran.To })
}

// mayCommit reports whether the text of a command mentions a program that commits.
func mayCommit(command string) bool {
	return strings.Contains(command, "git") || strings.Contains(command, "lockkeeper")
}

func (s *Session) recordCommitted(ctx context.Context, list []Committed) error {
	var gaps []lockkeeper.Event
	for _, x := range list {
		gaps = append(gaps, s.gap(x.Path, "commit "+x.Commit+" has it while "+x.Holder.Name()+" holds it", nil))
	}
	return s.record(ctx, gaps)
}

// maxCommits limits the remembered commits of a session.
const maxCommits = 100

// Committed records that the caller's session made a commit.
func (m *Mine) Committed(hash string) error {
	if m.info.ID == "" {
		return nil
	}
	s := &Session{file: filepath.Join(m.registry.dir, keyOf(m.info.Agent, m.info.ID)+recordEnd)}
	locked, err := lockFile(lockOf(s.file))
	if err != nil {
		return err
	}
	defer locked.Close()
	if s.rec, err = readRecord(s.file); err != nil || s.rec.ID == "" {
		return err
	}
	s.rec.Commits = append(s.rec.Commits, hash)
	s.rec.Commits = s.rec.Commits[max(0, len(s.rec.Commits)-maxCommits):]
	return s.save()
}
