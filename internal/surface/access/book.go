package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// Book is who may use one codebase's server.
type Book struct{ dir string }

// Open names the directory of a book, which is made when something is first kept there.
func Open(dir string) *Book { return &Book{dir: dir} }

// Entry is one name with its role.
type Entry struct {
	Name     string    `json:"name"`
	Role     Role      `json:"role"`
	HasToken bool      `json:"has_token"` // false: it logs in by tickets alone
	Made     time.Time `json:"made"`

	id string
}

// prefix begins every token, so that one that was leaked can be found.
const prefix = "lk_"

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// secret returns a random secret and its id.
func secret(prefix string) (text, id string) {
	random := make([]byte, 32)
	rand.Read(random) // never fails: it ends the program instead
	text = prefix + base64.RawURLEncoding.EncodeToString(random)
	return text, idOf(text)
}

func idOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// CheckName refuses an invalid name.
func CheckName(name string) error {
	if nameForm.MatchString(name) {
		return nil
	}
	return &lockkeeper.InputError{Field: "name", Value: name, Reason: "not a name of up to 40 letters, digits, dots, dashes and underscores", Next: "use one like otter or ci-1"}
}

// Add gives a new name a role, and makes its token, which is told once and not kept.
func (b *Book) Add(ctx context.Context, name string, role Role) (token string, err error) {
	token, id := secret(prefix)
	return token, b.add(ctx, Entry{Name: name, Role: role, HasToken: true, id: id})
}

func (b *Book) add(ctx context.Context, e Entry) error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	if _, err := ParseRole(string(e.Role)); err != nil {
		return err
	}
	there, err := b.find(e.Name)
	if err != nil {
		return err
	}
	if there != nil {
		return &lockkeeper.InputError{Field: "name", Value: e.Name, Reason: "it is taken, by one with the role " + string(there.Role), Next: "choose another one, or `lockkeeper token remove " + e.Name + "`"}
	}
	e.Made = time.Now().UTC()
	return b.write(ctx, filepath.Join("people", e.id+".json"), e)
}

// Member is somebody who may log in by tickets: the one with that name, or else a new
// one with a role and no token.
func (b *Book) Member(ctx context.Context, name string, role Role) (Person, error) {
	there, err := b.find(name)
	if err != nil {
		return Person{}, err
	}
	if there == nil {
		_, id := secret("")
		there = &Entry{Name: name, Role: role, id: id}
		if err := b.add(ctx, *there); err != nil {
			return Person{}, err
		}
	}
	return there.person(), nil
}

func (e *Entry) person() Person { return Person{Name: e.Name, Role: e.Role, id: e.id} }

// Dismiss takes a name away: its token and its sessions are worth nothing from now on.
func (b *Book) Dismiss(name string) error {
	there, err := b.find(name)
	if err != nil {
		return err
	}
	if there == nil {
		return &lockkeeper.InputError{Field: "name", Value: name, Reason: "nobody has that name", Next: "lockkeeper token list"}
	}
	err = os.Remove(filepath.Join(b.dir, "people", there.id+".json"))
	if errors.Is(err, fs.ErrNotExist) { // somebody else was faster
		err = nil
	}
	return err
}

// List shows every name, in order.
func (b *Book) List() ([]Entry, error) {
	files, err := os.ReadDir(filepath.Join(b.dir, "people"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, b.trouble(err)
	}
	list := []Entry{}
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue // on its way to become one
		}
		e, err := b.entry(id)
		if err != nil {
			return nil, err
		}
		if e != nil {
			list = append(list, *e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

func (b *Book) find(name string) (*Entry, error) {
	list, err := b.List()
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
	}
	return nil, err
}

// entry reads the entry of an id; nil: it is unknown.
func (b *Book) entry(id string) (*Entry, error) {
	e, err := durable.ReadJSON[Entry](filepath.Join(b.dir, "people", id+".json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, b.trouble(err)
	}
	e.id = id
	return &e, nil
}

// ByToken is whose token it is.
func (b *Book) ByToken(token string) (Person, bool, error) {
	if len(token) > 200 || !strings.HasPrefix(token, prefix) {
		return Person{}, false, nil
	}
	e, err := b.entry(idOf(token))
	if err != nil || e == nil || !e.HasToken {
		return Person{}, false, err
	}
	return e.person(), true, nil
}

// Still is a person as they are now; false: they may do nothing any more.
func (b *Book) Still(p Person) (Person, bool, error) {
	e, err := b.entry(p.id)
	if err != nil || e == nil {
		return Person{}, false, err
	}
	return e.person(), true, nil
}

// write keeps a value in a file of the book, for its owner alone.
func (b *Book) write(ctx context.Context, name string, value any) error {
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return b.trouble(err)
	}
	return durable.WriteJSON(ctx, path, value, 0o600)
}

func (b *Book) trouble(err error) error {
	return &lockkeeper.StoreError{Store: b.dir, Reason: "who may use the server cannot be read or kept", Err: err, Next: "see to it that it is yours, and that only you can read it"}
}
