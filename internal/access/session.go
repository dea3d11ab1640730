package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockkeeper/durable"
)

// Sessions signs and reads sessions. They are known by their signature alone, so a
// server that starts anew logs nobody out.
type Sessions struct {
	book *Book
	key  []byte
}

const keySize = 32

// Sessions opens the key of a book, which is made by the first who needs it.
func (b *Book) Sessions(ctx context.Context) (*Sessions, error) {
	path := filepath.Join(b.dir, "key")
	key, err := b.readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := b.makeKey(ctx, path); err != nil {
			return nil, b.trouble(err)
		}
		key, err = b.readKey(path)
	}
	if err != nil {
		return nil, b.trouble(err)
	}
	return &Sessions{book: b, key: key}, nil
}

func (b *Book) readKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has the mode %s: others can read what sessions are signed with; remove it, and a new one is made", path, info.Mode())
	}
	key, err := os.ReadFile(path)
	if err == nil && len(key) != keySize {
		err = fmt.Errorf("%s is not whole; remove it, and a new one is made", path)
	}
	return key, err
}

// makeKey makes a key unless somebody else is faster: it appears whole or not at all.
func (b *Book) makeKey(ctx context.Context, path string) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	key := make([]byte, keySize)
	rand.Read(key) // never fails: it ends the program instead
	draft := path + "." + rand.Text()
	if err := durable.WriteFile(ctx, draft, key, 0o600); err != nil {
		return err
	}
	err := os.Link(draft, path)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(draft))
}

// Make signs that somebody is who they are, until then.
func (s *Sessions) Make(p Person, until time.Time) string {
	said := p.id + "." + strconv.FormatInt(until.Unix(), 10)
	return said + "." + s.sign(said)
}

// Read is whose session it is; false: it is not one of ours, is over, or its person may
// do nothing any more.
func (s *Sessions) Read(session string, now time.Time) (Person, bool, error) {
	at := strings.LastIndexByte(session, '.')
	if at < 0 || len(session) > 200 || !hmac.Equal([]byte(session[at+1:]), []byte(s.sign(session[:at]))) {
		return Person{}, false, nil
	}
	id, expires, _ := strings.Cut(session[:at], ".")
	until, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || now.Unix() >= until {
		return Person{}, false, nil
	}
	return s.book.Still(Person{id: id})
}

func (s *Sessions) sign(said string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("session " + said)) // the purpose, so that nothing else that is signed passes for one
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
