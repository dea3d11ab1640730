package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/refusal"
)

// A request is a file that a person asked for, sent to the session that holds it.
type request struct {
	Path string `json:"path"`
	By   string `json:"by"`
}

// requestsKept is the lifetime of a request that no session read, and maxRequests is how many
// a session is told at once.
const (
	requestsKept = 24 * time.Hour
	maxRequests  = 20
)

// Ask records that a person asks the holder of a grant for a path. If the holder is a session,
// its next call tells it, and told is true. Other holders see the event only.
func (b *Registry) Ask(ctx context.Context, grant, path string, by lockkeeper.Actor) (told bool, err error) {
	if err := project.CheckGrantID(grant); err != nil {
		return false, err
	}
	e, err := b.app.Locks.Request(ctx, grant)
	if err != nil {
		return false, err
	}
	if e == nil {
		return false, &lockkeeper.NotHeldError{GrantID: grant, Reason: "it has ended", Next: "lockkeeper why " + path}
	}
	asked := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	_, err = b.app.Locks.Note(ctx, "", lockkeeper.Event{Kind: lockkeeper.EventAsked, Actor: by, GrantID: grant, Holder: e.Holder,
		Locks: []lockkeeper.Lock{asked}, Reason: by.Name + " asks for " + path})
	if err != nil || e.Policy != Policy {
		return false, err
	}
	b.sweepRequests()
	return true, b.addRequest(grant, request{Path: path, By: by.Name})
}

// requestsFile returns the file with the requests for a grant. The session itself removes it, so
// a request needs no lock on the session's file, which a slow call may hold.
func (b *Registry) requestsFile(grant string) string {
	return filepath.Join(b.dir, grant+requestsEnd)
}

const requestsEnd = ".asked"

// addRequest appends one line, which the kernel does not interleave with others.
func (b *Registry) addRequest(grant string, r request) (err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(b.requestsFile(grant), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(text, '\n'))
	return err
}

// sweepRequests removes requests whose sessions ended without reading them. A file that cannot
// be removed stays until the next sweep.
func (b *Registry) sweepRequests() {
	files, _ := filepath.Glob(filepath.Join(b.dir, "*"+requestsEnd))
	for _, name := range files {
		if info, err := os.Lstat(name); err == nil && b.now().Sub(info.ModTime()) > requestsKept {
			_ = os.Remove(name)
		}
	}
}

// asked returns the requests for the files of the session, each once.
func (s *Session) asked() (news []string, err error) {
	if s.rec.GrantID == "" {
		return nil, nil
	}
	name := s.registry.requestsFile(s.rec.GrantID)
	taken := name + ".read" // the file is renamed before it is read, so that no request is lost that arrives meanwhile
	if err := os.Rename(name, taken); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	text, err := os.ReadFile(taken)
	if err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan() && len(news) < maxRequests; {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil { // a crash cut the line
			continue
		}
		if text := refusal.Asked(r.Path, r.By); !slices.Contains(news, text) {
			news = append(news, text)
		}
	}
	return news, os.Remove(taken)
}
