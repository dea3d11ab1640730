package access

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A pass is the stored part of a ticket or a session: whom it stands for, and until when.
// Its file is named after the hash of the secret, so a reader of the directory cannot use
// it.
type pass struct {
	Person  string    `json:"person"` // id of the person
	Expires time.Time `json:"expires"`

	file string // name of the pass's file
}

// These are the directories of passes.
const (
	tickets  = "tickets"
	sessions = "sessions"
)

// TicketLife is how long a ticket can be used.
const TicketLife = 10 * time.Minute

// passesOfOne is how many tickets, and how many sessions, a person has at once. One more ends
// the one that expires first.
const passesOfOne = 100

// Ticket returns a secret that logs a person in once, within TicketLife.
func (a *Accounts) Ticket(ctx context.Context, p Person, now time.Time) (string, error) {
	return a.issue(ctx, tickets, p, now, now.Add(TicketLife))
}

// Redeem uses up a ticket and returns the person it logs in. It returns false if the ticket
// is unknown, used or expired, or if the person was removed.
func (a *Accounts) Redeem(text string, now time.Time) (Person, bool, error) {
	file := idOf(text) + ".json"
	t, err := read[pass](a, tickets, file)
	if err != nil || t == nil {
		return Person{}, false, err
	}
	if first, err := a.remove(tickets, file); err != nil || !first || !now.Before(t.Expires) {
		return Person{}, false, err
	}
	return a.Still(Person{id: t.Person})
}

// StartSession logs a person in and returns the secret of the session.
func (a *Accounts) StartSession(ctx context.Context, p Person, now, until time.Time) (string, error) {
	return a.issue(ctx, sessions, p, now, until)
}

// BySession returns the person of a session. It returns false if the session is unknown, has
// ended, or belongs to a name that was removed.
func (a *Accounts) BySession(text string, now time.Time) (Person, bool, error) {
	s, err := read[pass](a, sessions, idOf(text)+".json")
	if err != nil || s == nil || !now.Before(s.Expires) {
		return Person{}, false, err
	}
	return a.Still(Person{id: s.Person})
}

// EndSession ends a session for good, in every process that uses the directory.
func (a *Accounts) EndSession(text string) error {
	_, err := a.remove(sessions, idOf(text)+".json")
	return err
}

// RemoveKey removes the key with which earlier versions signed sessions. Those sessions
// could not be ended, and anyone who had read the key could make more.
func (a *Accounts) RemoveKey() error {
	_, err := a.remove("key")
	return err
}

// issue stores a pass and returns its secret.
func (a *Accounts) issue(ctx context.Context, kind string, p Person, now, until time.Time) (string, error) {
	if err := a.sweep(kind, now, passesOfOne-1); err != nil {
		return "", err
	}
	text, id := secret("")
	return text, a.write(ctx, filepath.Join(kind, id+".json"), pass{Person: p.id, Expires: until})
}

// sweep removes the passes of a kind that have expired or whose person was removed. most is
// the number of passes that a person keeps: of any more, it removes those that expire first.
func (a *Accounts) sweep(kind string, now time.Time, most int) error {
	files, err := os.ReadDir(filepath.Join(a.dir, kind))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return a.trouble(err)
	}
	kept := map[string][]pass{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".json") {
			continue // another process is writing this draft
		}
		switch p, err := read[pass](a, kind, f.Name()); {
		case err != nil: // a damaged pass logs no one in
			if _, err := a.remove(kind, f.Name()); err != nil {
				return err
			}
		case p != nil:
			p.file = f.Name()
			kept[p.Person] = append(kept[p.Person], *p)
		}
	}
	for person, list := range kept {
		owner, err := a.account(person)
		if err != nil {
			return err
		}
		slices.SortFunc(list, func(a, b pass) int { return b.Expires.Compare(a.Expires) })
		for i, p := range list {
			if owner != nil && now.Before(p.Expires) && i < most {
				continue
			}
			if _, err := a.remove(kind, p.file); err != nil {
				return err
			}
		}
	}
	return nil
}
