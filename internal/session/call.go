package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
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

// late treats the calls in progress as ended at the time now. A call may continue after a prompt or
// a release; its end is then reported later.
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
// known to write it. An example is the log of a server.
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
		return 0, fmt.Errorf("read the clock for file times: %w", err)
	}
	return t.Nano(), nil
}
