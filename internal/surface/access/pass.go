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

// The directories of passes.
const (
	tickets  = "tickets"
	sessions = "sessions"
)

// issue stores a pass and returns its secret.
func (b *Book) issue(ctx context.Context, kind string, p Person, until time.Time) (string, error) {
	text, id := secret("")
	return text, b.write(ctx, filepath.Join(kind, id+".json"), pass{Person: p.id, Expires: until})
}

// read returns the pass of a secret; nil: unknown.
func (b *Book) read(kind, text string) (*pass, error) { return b.readFile(kind, idOf(text)+".json") }

func (b *Book) readFile(kind, name string) (*pass, error) {
	p, err := durable.ReadJSON[pass](filepath.Join(b.dir, kind, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, b.trouble(err)
	}
	p.file = name
	return &p, nil
}

// revoke removes a pass. If several callers revoke the same pass, it returns true to one.
func (b *Book) revoke(kind, file string) (bool, error) {
	switch err := os.Remove(filepath.Join(b.dir, kind, file)); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, b.trouble(err)
	}
	return true, nil
}

// sweep removes the passes of a kind that have expired or whose person was removed. If a
// person has more than most, it also removes those that expire first.
func (b *Book) sweep(kind string, now time.Time, most int) error {
	files, err := os.ReadDir(filepath.Join(b.dir, kind))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return b.trouble(err)
	}
	kept := map[string][]pass{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".json") {
			continue // a draft that another process is writing
		}
		switch p, err := b.readFile(kind, f.Name()); {
		case err != nil: // a damaged pass admits nobody
			if _, err := b.revoke(kind, f.Name()); err != nil {
				return err
			}
		case p != nil:
			kept[p.Person] = append(kept[p.Person], *p)
		}
	}
	for person, list := range kept {
		owner, err := b.entry(person)
		if err != nil {
			return err
		}
		slices.SortFunc(list, func(a, b pass) int { return b.Expires.Compare(a.Expires) })
		for i, p := range list {
			if owner != nil && now.Before(p.Expires) && i < most {
				continue
			}
			if _, err := b.revoke(kind, p.file); err != nil {
				return err
			}
		}
	}
	return nil
}
