package session

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A span is the time during which a command ran, by the clock that stamps files. A file stamped
// with its end may have been written after it.
type span struct {
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Agent string `json:"agent,omitempty"` // the host's id of the subagent; empty: the main agent
	Git   bool   `json:"git,omitempty"`   // the command may have made commits
}

const maxSpans = 500

// ran records when a command ran.
func (s *Session) ran(c Call, to int64) {
	if c.Command == "" || c.At == 0 {
		return
	}
	s.rec.Ran = append(s.rec.Ran, span{From: c.At, To: to, Agent: c.Agent, Git: mayCommit(c.Command)})
	s.rec.Ran = s.rec.Ran[max(0, len(s.rec.Ran)-maxSpans):]
}

// Unknown lists the files whose content the session neither saw nor made. A file that was created
// or last written during one of its commands counts as made by the session. Builds leave files
// that no command names. That does not apply to a file that was uncommitted before the command,
// or that another session left in this state.
func (s *Session) Unknown(paths []string) (list []string, err error) {
	var others map[string]record
	for _, p := range paths {
		fact, err := s.unseen(Write{Path: p, Whole: true})
		if err != nil {
			return nil, err
		}
		if fact == "" {
			continue
		}
		holds, made, err := s.origin(p)
		if err != nil {
			return nil, err
		}
		if holds && made {
			if others == nil {
				if others, err = s.registry.records(); err != nil {
					return nil, err
				}
			}
			now, err := s.registry.stat(p)
			if err != nil {
				return nil, err
			}
			made = !s.leftByOther(others, p, now)
		}
		if holds && !made {
			list = append(list, p)
		}
	}
	return list, nil
}

// leftByOther reports whether one of the other sessions wrote a file last.
func (s *Session) leftByOther(known map[string]record, p string, now Print) bool {
	for file, r := range known {
		if left := r.Files[p]; file != s.file && left.Own && !left.touched(now) {
			return true
		}
	}
	return false
}

// origin reports whether a path has content that could be lost, and whether it was created during
// a command of the session. A link can be made again.
func (s *Session) origin(p string) (holds, made bool, err error) {
	var x unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, s.registry.at(p), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &x)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, false, nil
	case err != nil:
		return false, false, &os.PathError{Op: "statx", Path: p, Err: err}
	}
	kind := x.Mode & unix.S_IFMT
	born, wrote := nanos(x.Btime), nanos(x.Mtime) // born is 0 if the file system does not record it
	return kind == unix.S_IFREG || kind == unix.S_IFDIR, !s.rec.Theirs[p] && s.duringOwn(born, wrote), nil
}

// duringOwn reports whether a command of the session ran when a file was created or last
// written.
func (s *Session) duringOwn(born, wrote int64) bool {
	return slices.ContainsFunc(s.rec.Ran, func(r span) bool {
		return r.From <= wrote && wrote < r.To || r.From <= born && born < r.To && wrote < r.To
	})
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
