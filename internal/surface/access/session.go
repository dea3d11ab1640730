package access

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// sessionsOfOne is how many sessions a person has at once. One more ends the session that
// expires first.
const sessionsOfOne = 100

// StartSession logs a person in and returns the secret of the session.
func (a *Accounts) StartSession(ctx context.Context, p Person, now, until time.Time) (string, error) {
	if err := a.sweep(sessions, now, sessionsOfOne-1); err != nil {
		return "", err
	}
	return a.issue(ctx, sessions, p, until)
}

// BySession returns the person of a session. It returns false if the session is unknown, has
// ended, or belongs to a name that was removed.
func (a *Accounts) BySession(text string, now time.Time) (Person, bool, error) {
	s, err := a.read(sessions, text)
	if err != nil || s == nil || !now.Before(s.Expires) {
		return Person{}, false, err
	}
	return a.Still(Person{id: s.Person})
}

// EndSession ends a session for good, in every process that uses the directory.
func (a *Accounts) EndSession(text string) error {
	_, err := a.revoke(sessions, idOf(text)+".json")
	return err
}

// RemoveKey removes the key with which earlier versions signed sessions. Those sessions
// could not be ended, and anyone who had read the key could make more.
func (a *Accounts) RemoveKey() error {
	if err := os.Remove(filepath.Join(a.dir, "key")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a.trouble(err)
	}
	return nil
}
