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

	"lockkeeper/durable"
)

// A pass is the stored part of a ticket or a session: whom it stands for, and until when.
// Its file is named after the hash of the secret, so a reader of the directory cannot use
// it.
type pass struct {
	Person  string    `json:"person"` // id of the person
	Expires time.Time `json:"expires"`

	file string // name of its file
}

// These are the directories of passes.
const (
	tickets  = "tickets"
	sessions = "sessions"
)

// issue stores a pass and returns its secret.
func (a *Accounts) issue(ctx context.Context, kind string, p Person, until time.Time) (string, error) {
	text, id := secret("")
	return text, a.write(ctx, filepath.Join(kind, id+".json"), pass{Person: p.id, Expires: until})
}

// read returns the pass of a secret, or nil if the secret is unknown.
func (a *Accounts) read(kind, text string) (*pass, error) {
	return a.readFile(kind, idOf(text)+".json")
}

func (a *Accounts) readFile(kind, name string) (*pass, error) {
	p, err := durable.ReadJSON[pass](filepath.Join(a.dir, kind, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, a.trouble(err)
	}
	p.file = name
	return &p, nil
}

// revoke removes a pass. If several callers revoke the same pass, it returns true to one.
func (a *Accounts) revoke(kind, file string) (bool, error) {
	switch err := os.Remove(filepath.Join(a.dir, kind, file)); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, a.trouble(err)
	}
	return true, nil
}

// sweep removes the passes of a kind that have expired or whose person was removed. If a
// person has more than most, it also removes those that expire first.
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
			continue // a draft that another process is writing
		}
		switch p, err := a.readFile(kind, f.Name()); {
		case err != nil: // a damaged pass logs no one in
			if _, err := a.revoke(kind, f.Name()); err != nil {
				return err
			}
		case p != nil:
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
			if _, err := a.revoke(kind, p.file); err != nil {
				return err
			}
		}
	}
	return nil
}
