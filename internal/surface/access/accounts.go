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
type Accounts struct{ dir string }

// Open names the directory of a book, which is made when something is first kept there.
func Open(dir string) *Accounts { return &Accounts{dir: dir} }

// Account is one name with its role.
type Account struct {
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
func (a *Accounts) Add(ctx context.Context, name string, role Role) (token string, err error) {
	token, id := secret(prefix)
	return token, a.add(ctx, Account{Name: name, Role: role, HasToken: true, id: id})
}

func (a *Accounts) add(ctx context.Context, e Account) error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	if _, err := ParseRole(string(e.Role)); err != nil {
		return err
	}
	there, err := a.find(e.Name)
	if err != nil {
		return err
	}
	if there != nil {
		return &lockkeeper.InputError{Field: "name", Value: e.Name, Reason: "it is taken, by one with the role " + string(there.Role), Next: "choose another one, or `lockkeeper token remove " + e.Name + "`"}
	}
	e.Made = time.Now().UTC()
	return a.write(ctx, filepath.Join("people", e.id+".json"), e)
}

// Member is somebody who may log in by tickets: the one with that name, or else a new
// one with a role and no token.
func (a *Accounts) Member(ctx context.Context, name string, role Role) (Person, error) {
	there, err := a.find(name)
	if err != nil {
		return Person{}, err
	}
	if there == nil {
		_, id := secret("")
		there = &Account{Name: name, Role: role, id: id}
		if err := a.add(ctx, *there); err != nil {
			return Person{}, err
		}
	}
	return there.person(), nil
}

func (e *Account) person() Person { return Person{Name: e.Name, Role: e.Role, id: e.id} }

// Dismiss takes a name away: its token and its sessions are worth nothing from now on.
func (a *Accounts) Remove(name string) error {
	there, err := a.find(name)
	if err != nil {
		return err
	}
	if there == nil {
		return &lockkeeper.InputError{Field: "name", Value: name, Reason: "nobody has that name", Next: "lockkeeper token list"}
	}
	err = os.Remove(filepath.Join(a.dir, "people", there.id+".json"))
	if errors.Is(err, fs.ErrNotExist) { // somebody else was faster
		err = nil
	}
	return err
}

// List shows every name, in order.
func (a *Accounts) List() ([]Account, error) {
	files, err := os.ReadDir(filepath.Join(a.dir, "people"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, a.trouble(err)
	}
	list := []Account{}
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue // on its way to become one
		}
		e, err := a.account(id)
		if err != nil {
			return nil, err
		}
		if e != nil {
			list = append(list, *e)
		}
	}
	slices.SortFunc(list, func(a, b Account) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

func (a *Accounts) find(name string) (*Account, error) {
	list, err := a.List()
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
	}
	return nil, err
}

// entry reads the entry of an id; nil: it is unknown.
func (a *Accounts) account(id string) (*Account, error) {
	e, err := durable.ReadJSON[Account](filepath.Join(a.dir, "people", id+".json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, a.trouble(err)
	}
	e.id = id
	return &e, nil
}

// ByToken is whose token it is.
func (a *Accounts) ByToken(token string) (Person, bool, error) {
	if len(token) > 200 || !strings.HasPrefix(token, prefix) {
		return Person{}, false, nil
	}
	e, err := a.account(idOf(token))
	if err != nil || e == nil || !e.HasToken {
		return Person{}, false, err
	}
	return e.person(), true, nil
}

// Still is a person as they are now; false: they may do nothing any more.
func (a *Accounts) Still(p Person) (Person, bool, error) {
	e, err := a.account(p.id)
	if err != nil || e == nil {
		return Person{}, false, err
	}
	return e.person(), true, nil
}

// write keeps a value in a file of the book, for its owner alone.
func (a *Accounts) write(ctx context.Context, name string, value any) error {
	path := filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return a.trouble(err)
	}
	return durable.WriteJSON(ctx, path, value, 0o600)
}

func (a *Accounts) trouble(err error) error {
	return &lockkeeper.StoreError{Store: a.dir, Reason: "who may use the server cannot be read or kept", Err: err, Next: "see to it that it is yours, and that only you can read it"}
}
