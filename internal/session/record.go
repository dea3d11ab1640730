package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
	"lockkeeper/internal/machine/process"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// record is the stored state of a session.
type record struct {
	Info
	Root       string              `json:"root,omitempty"`   // root of the codebase of the session's last call
	Ended      bool                `json:"ended,omitempty"`  // the host restarts the session; the next session of the process takes the claims over
	Taking     bool                `json:"taking,omitempty"` // a call is about to acquire a grant that is not recorded yet
	Tickets    []Ticket            `json:"tickets,omitempty"`
	Files      map[string]File     `json:"files,omitempty"`   // by path
	Calls      map[string]Call     `json:"calls,omitempty"`   // calls in progress, by the host's id
	Background []Call              `json:"behind,omitempty"`  // commands that continue in the background
	Late       map[string]Call     `json:"late,omitempty"`    // calls that were treated as ended before their end was reported, counted from then
	Ran        []span              `json:"ran,omitempty"`     // when the last commands of the session ran
	Told       map[string]Told     `json:"told,omitempty"`    // reported changes of others' files, by path
	Git        string              `json:"git,omitempty"`     // grant of a git command in progress
	Trees      map[string]string   `json:"trees,omitempty"`   // work trees of claimed files, by repository and path
	Outside    map[string]bool     `json:"outside,omitempty"` // keys of Trees for files outside the codebase, changed in this turn
	Subagents  map[string]Subagent `json:"inner,omitempty"`   // subagents by the host's id

	Notices map[string][]string `json:"notices,omitempty"` // what agents of the session were not shown yet, by the host's id of the subagent

	Watched time.Time            `json:"watched,omitzero"` // when the session last looked for unchecked agents
	Beside  []lockkeeper.Process `json:"beside,omitempty"` // the unchecked agents that the session was told of

	Head    string   `json:"head,omitempty"`    // the commit after which commits of the session's files are reported
	Commits []string `json:"commits,omitempty"` // commits that the session made with lockkeeper commit

	Snapshots []string        `json:"snapshots,omitempty"` // open snapshots of uncommitted files
	Theirs    map[string]bool `json:"theirs,omitempty"`    // files that were written or moved while a command ran, and existed before
	Unkept    string          `json:"unkept,omitempty"`    // last warning about files that no snapshot has
}

// A Call is a tool call in progress.
type Call struct {
	At       int64    `json:"at"` // time in nanoseconds, by the clock that stamps files
	Dir      string   `json:"dir,omitempty"`
	Command  string   `json:"command,omitempty"`
	Programs []string `json:"programs,omitempty"` // source texts in other languages that the command contains and runs
	Writes   []string `json:"writes,omitempty"`   // for a call without a command: all files that it may write
	Agent    string   `json:"agent,omitempty"`    // the host's id of the subagent; empty: the main agent
	More     int      `json:"more,omitempty"`     // number of equal calls in progress
	Guarded  []string `json:"guarded,omitempty"`  // existing files that configure the checks
	Snapshot string   `json:"snapshot,omitempty"` // id of the snapshot of uncommitted files before the command
	Head     string   `json:"head,omitempty"`     // the commit of HEAD before a command that may make commits
}

// A Session is open for one call, under an exclusive lock.
type Session struct {
	registry *Registry
	rec      record
	file     string
	lock     *os.File
	New      bool // this call created the session

	inner string // id of the calling subagent; empty: the main agent

	shelf []rescue.Entry // entries of the rescue shelf; nil: not read yet, or empty
}

const (
	recordEnd = ".json"
	lockEnd   = ".lock"
)

// Enter opens the session of a caller, and creates it if it is new.
func (b *Registry) Enter(ctx context.Context, v Caller) (_ *Session, err error) {
	if v.ID == "" || v.Agent == "" {
		return nil, &lockkeeper.InputError{Field: "session", Value: v.ID, Reason: "it has no id, or its agent has no name", Next: "update the agent: its hooks must say who calls"}
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	s := &Session{registry: b, file: b.recordFile(v)}
	if s.lock, err = lockFile(lockOf(s.file)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.lock.Close())
		}
	}()
	if s.rec, err = readRecord(s.file); err != nil {
		return nil, err
	}
	if s.New = s.rec.ID == ""; s.New {
		if err := s.create(ctx, v); err != nil {
			return nil, err
		}
	}
	if err := s.admit(v); err != nil {
		return nil, err
	}
	if s.rec.Taking {
		if err := s.adopt(ctx); err != nil {
			return nil, err
		}
	}
	if v.Process != nil && s.rec.Process != nil && !sameProcess(s.rec.Process, v.Process) {
		// The session was resumed by another process. The process before it is gone, so
		// its claims are free for others.
		if err := s.releaseAll(ctx); err != nil {
			return nil, err
		}
	}
	s.rec.Seen, s.rec.Ended, s.rec.Root = b.now(), false, b.app.Root.Dir()
	s.enterAs(v.Subagent)
	if about := firstWords(v.About); about != "" {
		s.rec.About = about
	}
	if v.Process != nil {
		s.rec.Process, s.rec.TTY = v.Process, v.TTY
	}
	return s, nil
}

func (b *Registry) recordFile(v Caller) string {
	return filepath.Join(b.dir, keyOf(v.Agent, v.ID)+recordEnd)
}

// admit refuses a caller from another process while the session's own process is alive. An agent
// could learn the ids of other sessions and end their turns.
func (s *Session) admit(v Caller) error {
	owner := s.rec.Process
	if owner == nil || sameProcess(owner, v.Process) || s.registry.app.Host.Liveness(*owner) != lockkeeper.ProcessAlive {
		return nil
	}
	return &lockkeeper.RefusedError{Act: "session " + v.ID, Reason: fmt.Sprintf("it is %s, which runs in another process (pid %d)", s.rec.Callsign, owner.PID),
		Next: "end it there, or begin a new session here"}
}

// create makes a new session. It continues a session that ended in the same process, or gets a
// callsign that no live session has.
func (s *Session) create(ctx context.Context, v Caller) error {
	b := s.registry
	creating, err := lockFile(filepath.Join(b.dir, "door"+lockEnd))
	if err != nil {
		return err
	}
	defer creating.Close()
	taken := map[string]bool{}
	known, err := b.records()
	if err != nil {
		return err
	}
	for file, r := range known {
		if r.Ended && sameProcess(r.Process, v.Process) {
			s.rec = r
			s.rec.ID, s.rec.Agent, s.rec.Seen, s.rec.Ended = v.ID, v.Agent, b.now(), false
			return errors.Join(s.save(), remove(file, file+draftEnd))
		}
		switch {
		case b.alive(r.Info):
			taken[r.Callsign] = true
		case b.now().Sub(r.Seen) > quiet:
			if err := forget(file); err != nil {
				return err
			}
		}
	}
	err = b.app.Store.View(ctx, func(r store.Reader) error {
		grants, err := b.app.Locks.GrantsIn(r)
		for _, g := range grants {
			taken[g.Holder] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	s.rec = record{Info: Info{ID: v.ID, Agent: v.Agent, Began: b.now(), Seen: b.now(), Process: v.Process, TTY: v.TTY}}
	for try := 0; s.rec.Callsign == "" || taken[s.rec.Callsign]; try++ {
		s.rec.Callsign = process.Callsign(fmt.Sprint(v.Agent, "\x00", v.ID, "\x00", try))
	}
	return s.save() // saves under the lock, so that the next new session sees the callsign
}

// Info returns the public data of the session.
func (s *Session) Info() Info { return s.rec.Info }

// Close saves the record and unlocks the session for the next call.
func (s *Session) Close() error {
	s.rec.Taking = false
	return errors.Join(s.save(), s.lock.Close())
}

func (s *Session) save() error {
	text, err := json.Marshal(s.rec)
	if err != nil {
		return err
	}
	return writeRecord(s.file, text)
}

func lockOf(file string) string { return strings.TrimSuffix(file, recordEnd) + lockEnd }

// forget removes a session's record, its draft and its lock file.
func forget(file string) error { return remove(file, file+draftEnd, lockOf(file)) }

// remove removes files, as far as they exist.
func remove(names ...string) error {
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// records reads the records of all sessions of this user, by file name. It skips unreadable
// records, because their own sessions report them.
func (b *Registry) records() (map[string]record, error) {
	names, err := filepath.Glob(filepath.Join(b.dir, "*"+recordEnd))
	all := map[string]record{}
	for _, name := range names {
		if r, err := readRecord(name); err == nil && r.ID != "" {
			all[name] = r
		}
	}
	return all, err
}

// quiet is how long a session of an unknown process counts as alive after its last call.
const quiet = 24 * time.Hour

// alive reports whether a session may still run.
func (b *Registry) alive(s Info) bool {
	if s.Process != nil {
		switch b.app.Host.Liveness(*s.Process) {
		case lockkeeper.ProcessDead:
			return false
		case lockkeeper.ProcessAlive:
			return true
		}
	}
	return b.now().Sub(s.Seen) < quiet
}

func sameProcess(p, q *lockkeeper.Process) bool {
	return p != nil && q != nil && p.Host == q.Host && p.Boot == q.Boot && p.PIDNS == q.PIDNS && p.PID == q.PID && p.Start == q.Start
}

// lockFile opens a file and waits for its exclusive lock. The holder is answering a call, which
// takes milliseconds. A caller that cannot wait needs its own deadline. If the file was removed
// during the wait, its lock protects nothing, so lockFile tries again.
func lockFile(name string) (*os.File, error) {
	for {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := filelock.Wait(f); err != nil {
			return nil, errors.Join(&os.PathError{Op: "flock", Path: name, Err: err}, f.Close())
		}
		mine, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Stat(name); err == nil && os.SameFile(mine, there) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}
