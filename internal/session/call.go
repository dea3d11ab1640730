package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/rescue"
)

// Begin records that a tool call begins. Two equal calls in progress of a host without call ids
// share one id, and both count from the beginning of the first.
func (s *Session) Begin(id string, c Call) error {
	now, err := fileClock()
	if err != nil {
		return err
	}
	if s.rec.Calls == nil || len(s.rec.Calls) > maxCalls {
		s.rec.Calls = map[string]Call{}
	}
	if err := s.madeAgain(); err != nil {
		return err
	}
	c.At, c.Agent = now, s.inner
	if same, open := s.rec.Calls[id]; open && now-same.At < int64(longestCall) {
		c.At, c.More, c.Snapshot = same.At, same.More+1, same.Snapshot
	}
	s.rec.Calls[id] = c
	return nil
}

// madeAgain forgets reported removals of files that exist again. If such a file is removed
// again, that is a new removal, even if its holder reports no content.
func (s *Session) madeAgain() error {
	for path, told := range s.rec.Told {
		if told.Is.Inode != 0 {
			continue
		}
		is, err := s.registry.stat(path)
		if err != nil {
			return err
		}
		if is.Inode != 0 {
			delete(s.rec.Told, path)
		}
	}
	return nil
}

// maxCalls limits the calls without a reported end.
const maxCalls = 100

// End removes a call from those in progress and returns it. If continues is set, its command
// continues in the background. End returns the zero Call for a call that never began. For a call
// that already counted as ended, it returns the part since then.
func (s *Session) End(id string, continues bool) Call {
	calls := s.rec.Calls
	if _, open := calls[id]; !open {
		calls = s.rec.Late
	}
	c := calls[id]
	if delete(calls, id); c.More > 0 {
		c.More--
		calls[id] = c
	}
	if continues && c.At != 0 {
		s.toBackground(c)
	}
	return c
}

// toBackground makes later comparisons include a call.
func (s *Session) toBackground(c Call) {
	s.rec.Background = append(s.rec.Background, c)
	s.rec.Background = s.rec.Background[max(0, len(s.rec.Background)-maxCalls):]
}

// EndAll ends the calls without a reported end, which a person interrupted or refused. Changes to
// held files that these calls name count as the session's work. It returns the call to compare.
func (s *Session) EndAll(ctx context.Context) (Call, error) {
	now, err := fileClock()
	if err != nil {
		return Call{}, err
	}
	all := s.with(Call{}, now)
	held, err := s.Holds(ctx)
	if err != nil {
		return all, err
	}
	for _, c := range s.rec.Calls {
		if now-c.At >= int64(longestCall) {
			continue
		}
		if err := s.made(ctx, held, c); err != nil {
			return all, err
		}
		s.ran(c, now)
	}
	s.late(now)
	return all, nil
}

// late treats the calls in progress as ended at now. A call may continue after a prompt or a
// release; its end is then reported later.
func (s *Session) late(now int64) {
	if len(s.rec.Late)+len(s.rec.Calls) > maxCalls {
		s.rec.Late = nil
	}
	for id, c := range s.rec.Calls {
		if s.rec.Late == nil {
			s.rec.Late = map[string]Call{}
		}
		c.At = now
		s.rec.Late[id] = c
	}
	s.rec.Calls = nil
}

// with returns a call combined with the commands that run in the background. A command whose
// end was not reported may also still run, such as a shell that Codex keeps open and types
// into. Its changes count, but the text of its command proves nothing.
func (s *Session) with(c Call, now int64) Call {
	for _, open := range s.rec.Calls {
		if open.Command != "" && now-open.At <= int64(longestCall) && (c.At == 0 || open.At < c.At) {
			c.At = open.At
		}
	}
	for _, b := range s.rec.Background {
		if now-b.At > int64(longestCall) {
			continue
		}
		if c.At == 0 || b.At < c.At {
			c.At = b.At
		}
		c.Command += "\n" + b.Command
		c.Programs = slices.Concat(c.Programs, b.Programs)
	}
	return c
}

// growsInBackground reports whether a file only grew and a background command of the session is
// known to write it, such as the log of a server.
func (s *Session) growsInBackground(path string, was File, is Print, content []byte, now int64) bool {
	left := Copy(s.registry.app, was.Sum)
	return was.Own && was.Found == nil && was.Inode == is.Inode && was.Size <= is.Size && (left == nil || content == nil || bytes.HasPrefix(content, left)) &&
		slices.ContainsFunc(s.rec.Background, func(b Call) bool { return now-b.At <= int64(longestCall) && slices.Contains(b.Writes, path) })
}

// made records held files as the session's own work if they are newer than the call and the call
// names them. Another program may have made other changes in that time.
func (s *Session) made(ctx context.Context, held []string, c Call) error {
	named := slices.DeleteFunc(slices.Clone(held), func(p string) bool { return !c.names(p) })
	touched, err := s.registry.touchedSince(ctx, named, c.At)
	if err != nil {
		return err
	}
	return s.remember(ctx, touched, true)
}

// names reports whether a part of the call that may write names a path.
func (c Call) names(path string) bool {
	return slices.Contains(c.Writes, path) || len(naming(c.Command, path)) > 0
}

// Left records the files that a call of this session wrote: those that it is known to write, and
// held files that it names.
func (s *Session) Left(ctx context.Context, c Call, named []string) error {
	held, err := s.Holds(ctx)
	if err != nil {
		return err
	}
	if c.Command != "" {
		now, err := fileClock()
		if err != nil {
			return err
		}
		s.ran(c, now)
		if err := s.made(ctx, held, c); err != nil {
			return err
		}
	}
	own := slices.DeleteFunc(slices.Clone(named), func(p string) bool { return !slices.Contains(held, p) })
	return s.remember(ctx, own, true)
}

// longestCall limits how long a call counts as in progress. No host allows a longer call.
const longestCall = time.Hour

// mayWrite reports whether a call in progress of the session may be writing a path.
func (r *record) mayWrite(path string, now int64) bool {
	for _, c := range r.Calls {
		if now-c.At < int64(longestCall) && (c.Command != "" || slices.Contains(c.Writes, path)) {
			return true
		}
	}
	return false
}

// fileClock returns the time of the coarse clock that stamps files.
func fileClock() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &t); err != nil {
		return 0, fmt.Errorf("the clock of files: %w", err)
	}
	return t.Nano(), nil
}

// A Disturbance is a file that this session holds and that another program changed.
type Disturbance struct {
	Path          string
	At            time.Time
	Gone          bool
	DuringCommand bool   // a command of the session ran at that time and may have made the change
	Rescue        string // id of the session's version on the rescue shelf; empty: not kept
	By            Writer
	Beside        []Subagent // further agents of the session that work on the file, or whose command may have made the change
}

// Disturbed checks whether the files that the session holds are as it left them. It reports each
// changed file once and keeps the session's version. It skips files that calls in progress may be
// writing. c is the call that just ended, or the zero Call.
func (s *Session) Disturbed(ctx context.Context, c Call) (list []Disturbance, err error) {
	now, err := fileClock()
	if err != nil {
		return nil, err
	}
	c = s.with(c, now)
	paths, err := s.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		was, known := s.rec.Files[path]
		if !known || path == lockkeeper.GitTarget || s.rec.mayWrite(path, now) {
			continue
		}
		is, err := s.registry.stat(path)
		if err != nil {
			return nil, err
		}
		if !was.there().touched(is) {
			continue
		}
		is, content, err := s.registry.read(path)
		if err != nil {
			return nil, err
		}
		if !was.there().changed(is) {
			s.rec.Files[path] = was.still(is)
			continue
		}
		if was.Own && was.Sum != "" && was.Sum == is.Sum || s.growsInBackground(path, was, is, content, now) {
			s.rec.Files[path] = File{Print: is, Own: true, Seen: true} // the content is back, or is still the session's own work
			continue
		}
		d := Disturbance{Path: path, At: time.Unix(0, is.Mtime), Gone: is.Inode == 0}
		d.DuringCommand = c.At != 0 && (d.Gone || is.Ctime >= c.At)
		if d.By, err = s.writer(path, is); err != nil {
			return nil, err
		}
		if d.Rescue, err = s.keep(ctx, path, was); err != nil {
			return nil, err
		}
		d.Beside = s.concerned(path, is)
		list = append(list, d)
		was.Found, was.Seen = &is, false
		s.rec.Files[path] = was
	}
	return list, nil
}

// keep puts the content that the session left at a path on the rescue shelf.
func (s *Session) keep(ctx context.Context, path string, was File) (string, error) {
	content := Copy(s.registry.app, was.Sum)
	if content == nil || !was.Own {
		return "", nil
	}
	e, err := s.shelve(ctx, rescue.Entry{Kind: rescue.Displaced, Path: path, GrantID: s.rec.GrantID, Holder: s.rec.Callsign, Mode: 0o644,
		Reason: "it was changed while " + s.rec.Callsign + " held it, maybe by a program that acquired no lock"}, content)
	return e.ID, err
}
