package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/session/snapshot"
)

// Keep takes a snapshot of the files that would be lost permanently if a command removed them.
// It returns the id of the snapshot for Begin, and the files that it could not copy. Files
// that this session made need no copy.
func (s *Session) Keep(ctx context.Context, id, command string) (kept string, missed []snapshot.Miss, err error) {
	if open, is := s.rec.Calls[id]; is && open.Snapshot != "" { // an equal call is in progress
		return open.Snapshot, nil, nil
	}
	candidates, err := AtRisk(ctx, s.registry.app)
	if err != nil {
		return "", nil, err
	}
	others, err := s.registry.records()
	if err != nil {
		return "", nil, err
	}
	made := func(path string, is snapshot.State, born int64) bool {
		now := printOfState(is)
		if f := s.rec.Files[path]; f.Own && !f.Part && f.Found == nil && !f.touched(now) {
			return true
		}
		return !s.rec.Theirs[path] && s.duringOwn(born, is.Mtime) && !s.leftByOther(others, path, now)
	}
	snap := snapshot.Snapshot{Holder: s.rec.Callsign, Process: s.rec.Process, Command: shortened(command)}
	taken, missed, err := Snapshots(s.registry.app).Take(ctx, snap, candidates, snapshot.DefaultLimits(), made)
	if err != nil || taken.ID == "" {
		return "", missed, err
	}
	s.rec.Snapshots = append(s.rec.Snapshots, taken.ID)
	return taken.ID, missed, nil
}

func printOfState(s snapshot.State) Print {
	return Print{Inode: s.Inode, Size: s.Size, Mtime: s.Mtime, Ctime: s.Ctime}
}

// shortened returns a command on one line of limited length.
func shortened(command string) string {
	text := strings.Join(strings.Fields(command), " ")
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200]) + " …"
	}
	return text
}

// A Loss is an uncommitted file that a command of this session removed or overwrote and
// that the session did not create.
type Loss struct {
	Path   string
	Gone   bool   // the file was removed
	Rescue string // id on the rescue shelf; empty: the next listing of the shelf assigns one
}

// Lost compares the tree with the open snapshots of this session and puts lost files on the
// rescue shelf. It closes the snapshots whose commands have ended.
func (s *Session) Lost(ctx context.Context) (list []Loss, err error) {
	now, err := fileClock()
	if err != nil {
		return nil, err
	}
	store := Snapshots(s.registry.app)
	var open []string
	for _, id := range s.rec.Snapshots {
		snap, failed := store.Get(id)
		if failed != nil || snap == nil {
			err = errors.Join(err, failed)
			continue
		}
		lost, failed := s.lostOf(ctx, store, snap)
		list = append(list, lost...)
		switch {
		case failed != nil:
			err, open = errors.Join(err, failed), append(open, id)
		case s.mayStillRun(id, now):
			open = append(open, id)
		default:
			err = errors.Join(err, store.Close(snap))
		}
	}
	s.rec.Snapshots = open
	return list, err
}

// mayStillRun reports whether the command of a snapshot may still run, as far as the session
// knows.
func (s *Session) mayStillRun(id string, now int64) bool {
	is := func(c Call) bool { return c.Snapshot == id && now-c.At <= int64(longestCall) }
	for _, calls := range []map[string]Call{s.rec.Calls, s.rec.Late} {
		for _, c := range calls {
			if is(c) {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.rec.Background, is)
}

// lostOf puts the lost files of one snapshot on the shelf. If time runs out, it stores the
// rest in a snapshot of its own, which the next listing of the shelf recovers.
func (s *Session) lostOf(ctx context.Context, store *snapshot.Store, snap *snapshot.Snapshot) (list []Loss, err error) {
	changes, err := store.Changed(ctx, snap)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	lost, done, err := s.sortOut(ctx, store, changes)
	if err != nil {
		return nil, err
	}
	until, limited := ctx.Deadline()
	half := time.Now().Add(time.Until(until) / 2)
	for i, c := range lost {
		if i >= mostKept || limited && time.Now().After(half) {
			rest := make([]snapshot.File, 0, len(lost)-i)
			for _, c := range lost[i:] {
				list, rest = append(list, Loss{Path: c.Path, Gone: c.Gone}), append(rest, c.File)
			}
			return list, errors.Join(store.SetAside(snap, rest), store.Without(snap, append(done, rest...)))
		}
		e, err := KeepUncommitted(ctx, s.registry.app, snap, c)
		if err != nil {
			return list, errors.Join(err, store.Without(snap, done))
		}
		list, done = append(list, Loss{Path: c.Path, Gone: c.Gone, Rescue: e.ID}), append(done, c.File)
	}
	return list, store.Without(snap, done)
}

// sortOut divides changes into lost files and files that need no rescue (done): those that
// this or another session changed with its tools, and those that were only moved. It records
// that the session made neither the moved nor the overwritten files.
func (s *Session) sortOut(ctx context.Context, store *snapshot.Store, changes []snapshot.Change) (lost []snapshot.Change, done []snapshot.File, err error) {
	others, err := s.registry.records()
	if err != nil {
		return nil, nil, err
	}
	clock, err := fileClock()
	if err != nil {
		return nil, nil, err
	}
	var gone []snapshot.Change
	for _, c := range changes {
		now := printOfState(c.Now)
		own := s.rec.Files[c.Path]
		switch {
		case own.left(now), s.workOfOther(others, c.Path, now, clock):
			done = append(done, c.File)
		case c.Gone:
			gone = append(gone, c)
		default:
			s.notMade(c.Path)
			lost = append(lost, c)
		}
	}
	if len(gone) == 0 {
		return lost, done, nil
	}
	candidates, err := AtRisk(ctx, s.registry.app)
	if err != nil {
		return nil, nil, err
	}
	var paths []string
	for _, c := range candidates {
		paths = append(paths, c.Path)
	}
	moved := store.Moved(gone, paths)
	for _, c := range gone {
		if to := moved[c.Path]; to != "" {
			s.notMade(to)
			done = append(done, c.File)
		} else {
			lost = append(lost, c)
		}
	}
	return lost, done, nil
}

// left reports whether a file is as this session left it. The session must know the whole file,
// or have been told of a change while its own version is on the shelf.
func (f File) left(now Print) bool {
	return f.Own && !f.expected().touched(now) && (!f.Part || f.Found != nil && f.Sum != "")
}

// workOfOther reports whether a file is as another session left it, or a session that knows the
// file may be writing it.
func (s *Session) workOfOther(known map[string]record, path string, now Print, clock int64) bool {
	for file, r := range known {
		left, knows := r.Files[path]
		if file != s.file && knows && left.Own && (!left.expected().touched(now) || r.mayWrite(path, clock)) {
			return true
		}
	}
	return false
}

// notMade records that this session did not create a file, even if the file's times suggest it.
func (s *Session) notMade(path string) {
	if s.rec.Theirs == nil || len(s.rec.Theirs) > maxFiles {
		s.rec.Theirs = map[string]bool{}
	}
	s.rec.Theirs[path] = true
}

// Unkept records a warning about files that could not be copied, and reports whether the warning
// is new to the session.
func (s *Session) Unkept(text string) bool {
	told := s.rec.Unkept == text
	s.rec.Unkept = text
	return !told
}
