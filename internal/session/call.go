package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/rescue"
)

// Begin notes that a call of a tool begins, with its command if it has one, or with the
// paths that it writes.
func (s *Seat) Begin(id, command string, writes ...string) error {
	now, err := fileClock()
	if err != nil {
		return err
	}
	if s.rec.Calls == nil || len(s.rec.Calls) > maxCalls {
		s.rec.Calls = map[string]Call{}
	}
	s.rec.Calls[id] = Call{At: now, Command: command, Writes: writes}
	return nil
}

// maxCalls bounds calls whose end was never told.
const maxCalls = 100

// End takes a call that has ended from those under way; goesOn says that its command works
// on in the background. Of one that never began it is the zero Call.
func (s *Seat) End(id string, goesOn bool) Call {
	c := s.rec.Calls[id]
	delete(s.rec.Calls, id)
	if goesOn && c.At != 0 {
		s.rec.Behind = append(s.rec.Behind, c)
		s.rec.Behind = s.rec.Behind[max(0, len(s.rec.Behind)-maxCalls):]
	}
	return c
}

// EndAll ends the calls whose end was never told: a person interrupted or refused them. What
// they may have written of what the session holds passes for their work. It returns what is
// to be compared.
func (s *Seat) EndAll(ctx context.Context) (Call, error) {
	now, err := fileClock()
	if err != nil {
		return Call{}, err
	}
	all := s.with(Call{}, now)
	held, err := s.Holds(ctx)
	if err != nil {
		return all, err
	}
	first := now
	for _, c := range s.rec.Calls {
		first = min(first, c.At)
	}
	maybe := slices.DeleteFunc(held, func(p string) bool { return !s.rec.mayWrite(p, now) })
	touched, err := s.book.touchedSince(ctx, maybe, first)
	if err != nil {
		return all, err
	}
	if err := s.remember(touched, true); err != nil {
		return all, err
	}
	s.rec.Calls = nil
	return all, nil
}

// with is a call together with the commands that go on in the background. A command whose
// end was not told may go on as well, such as a shell that Codex keeps open and types into:
// what changes meanwhile counts, but what it spelled proves nothing.
func (s *Seat) with(c Call, now int64) Call {
	for _, open := range s.rec.Calls {
		if open.Command != "" && now-open.At <= int64(longestCall) && (c.At == 0 || open.At < c.At) {
			c.At = open.At
		}
	}
	for _, b := range s.rec.Behind {
		if now-b.At > int64(longestCall) {
			continue
		}
		if c.At == 0 || b.At < c.At {
			c.At = b.At
		}
		c.Command += "\n" + b.Command
	}
	return c
}

// Left notes what a call of this session left: the files that it named, and whatever else
// of the session's own is newer than the call.
func (s *Seat) Left(ctx context.Context, c Call, named []string) error {
	held, err := s.Holds(ctx)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(named), func(p string) bool { return !slices.Contains(held, p) })
	if c.Command != "" {
		touched, err := s.book.touchedSince(ctx, held, c.At)
		if err != nil {
			return err
		}
		own = append(own, touched...)
	}
	return s.remember(own, true)
}

// longestCall is how long a call counts as under way: the hosts give none more time.
const longestCall = time.Hour

// mayWrite reports whether a call of the session that is under way may be writing a path.
func (r *record) mayWrite(path string, now int64) bool {
	for _, c := range r.Calls {
		if now-c.At < int64(longestCall) && (c.Command != "" || slices.Contains(c.Writes, path)) {
			return true
		}
	}
	return false
}

// fileClock is the time by the clock that stamps files, which is a little late.
func fileClock() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &t); err != nil {
		return 0, fmt.Errorf("the clock of files: %w", err)
	}
	return t.Nano(), nil
}

// Disturbance is a file that this session holds and that somebody else changed.
type Disturbance struct {
	Path   string
	At     time.Time
	Gone   bool
	Rescue string // where what this session had left there is kept; empty: it is not
}

// Disturbed looks whether what the session holds is still as it left it. What is not is
// told once, and its own version is kept. Of what calls of its own may be writing nobody can
// tell.
func (s *Seat) Disturbed(ctx context.Context) (list []Disturbance, err error) {
	now, err := fileClock()
	if err != nil {
		return nil, err
	}
	paths, err := s.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		was, known := s.rec.Files[path]
		if !known || path == lockkeeper.GitTarget || s.rec.mayWrite(path, now) {
			continue
		}
		is, err := s.book.look(path)
		if err != nil {
			return nil, err
		}
		if !was.touched(is) {
			continue
		}
		if is, _, err = s.book.take(path); err != nil {
			return nil, err
		}
		if was.changed(is) {
			d := Disturbance{Path: path, At: time.Unix(0, is.Mtime), Gone: is.Inode == 0}
			if d.Rescue, err = s.keep(ctx, path, was); err != nil {
				return nil, err
			}
			list = append(list, d)
		}
		s.note(path, File{Print: is, Seen: was.Seen && !was.changed(is)})
	}
	return list, nil
}

// keep puts what the session had left at a path on the rescue shelf.
func (s *Seat) keep(ctx context.Context, path string, was File) (string, error) {
	content := s.book.copied(was.Sum)
	if content == nil || !was.Own {
		return "", nil
	}
	e, err := s.book.shelve(ctx, rescue.Entry{Kind: rescue.Displaced, Path: path, GrantID: s.rec.GrantID, Holder: s.rec.Callsign, Mode: 0o644,
		Reason: "somebody who asked nobody changed it while " + s.rec.Callsign + " held it"}, content)
	return e.ID, err
}
