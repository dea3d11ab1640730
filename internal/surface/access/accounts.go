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

// Accounts are the users of one codebase's server, with their roles.
type Accounts struct{ dir string }

// Open returns the accounts in a directory. The first write creates the directory.
func Open(dir string) *Accounts { return &Accounts{dir: dir} }

// An Account is a name with a role.
type Account struct {
	Name     string    `json:"name"`
	Role     Role      `json:"role"`
	HasToken bool      `json:"has_token"` // false: the account can log in only with tickets
	Made     time.Time `json:"made"`

	id string
}

// prefix begins every token, so that scanners can find a leaked one.
const prefix = "lk_"

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// secret returns a random secret and its id.
func secret(prefix string) (text, id string) {
	random := make([]byte, 32)
	rand.Read(random) // never returns an error: it ends the program instead
	text = prefix + base64.RawURLEncoding.EncodeToString(random)
	return text, idOf(text)
}

func idOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func CheckName(name string) error {
	if nameForm.MatchString(name) {
		return nil
	}
	return &lockkeeper.InputError{Field: "name", Value: name, Reason: "not a name of up to 40 letters, digits, dots, dashes and underscores", Next: "use one like otter or ci-1"}
}

// Add creates an account and returns its token, which is not stored.
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
		return &lockkeeper.InputError{Field: "name", Value: e.Name, Reason: "already used, by an account with the role " + string(there.Role), Next: "choose another name, or `lockkeeper token remove " + e.Name + "`"}
	}
	e.Made = time.Now().UTC()
	return a.write(ctx, filepath.Join("people", e.id+".json"), e)
}

// Member returns the account with a name, for a login by ticket. If there is none, it
// creates one with the role and without a token.
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

// Revoke deletes an account. Its token and its sessions stop working at once.
func (a *Accounts) Revoke(name string) error {
	there, err := a.find(name)
	if err != nil {
		return err
	}
	if there == nil {
		return &lockkeeper.InputError{Field: "name", Value: name, Reason: "unknown name", Next: "lockkeeper token list"}
	}
	_, err = a.remove("people", there.id+".json")
	return err
}

// List returns all accounts, sorted by name.
func (a *Accounts) List() ([]Account, error) {
	files, err := os.ReadDir(filepath.Join(a.dir, "people"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, a.trouble(err)
	}
	list := []Account{}
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue // another process is writing this draft
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

// account returns the account with an id, or nil if the id is unknown.
func (a *Accounts) account(id string) (*Account, error) {
	e, err := read[Account](a, "people", id+".json")
	if e != nil {
		e.id = id
	}
	return e, err
}

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

// Still returns a person with their current role, or false if the account was removed.
func (a *Accounts) Still(p Person) (Person, bool, error) {
	e, err := a.account(p.id)
	if err != nil || e == nil {
		return Person{}, false, err
	}
	return e.person(), true, nil
}

// write stores a value in a file that only its owner can read.
func (a *Accounts) write(ctx context.Context, name string, value any) error {
	path := filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return a.trouble(err)
	}
	return durable.WriteJSON(ctx, path, value, 0o600)
}

// read reads a file of the directory. It returns nil if the file does not exist.
func read[T any](a *Accounts, name ...string) (*T, error) {
	value, err := durable.ReadJSON[T](filepath.Join(a.dir, filepath.Join(name...)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, a.trouble(err)
	}
	return &value, nil
}

// remove removes a file of the directory. If several callers remove the same file, it returns
// true to one.
func (a *Accounts) remove(name ...string) (bool, error) {
	switch err := os.Remove(filepath.Join(a.dir, filepath.Join(name...))); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, a.trouble(err)
	}
	return true, nil
}

func (a *Accounts) trouble(err error) error {
	return &lockkeeper.StoreError{Store: a.dir, Reason: "cannot read or write the accounts of the server", Err: err, Next: "make the directory yours, with mode 0700"}
}
