package access

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// Listening describes where the server of a codebase listens.
type Listening struct {
	Address string              `json:"address"` // such as http://127.0.0.1:4711
	Process *lockkeeper.Process `json:"process"`
	Since   time.Time           `json:"since"`
}

// LoginLink returns the address that logs in with a ticket. Browsers do not send the part
// after the #, so the ticket reaches no log and no other page.
func (l Listening) LoginLink(ticket string) string { return l.Address + "/login#" + ticket }

func (a *Accounts) listeningPath() string { return filepath.Join(a.dir, "server.json") }

// Announce records the address of the server, for logins. The last call counts.
func (a *Accounts) Announce(ctx context.Context, l Listening) error {
	return a.write(ctx, "server.json", l)
}

// Listening returns the last announced address; nil: none. The server may have ended since:
// check its process.
func (a *Accounts) Listening() (*Listening, error) {
	l, err := durable.ReadJSON[Listening](a.listeningPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, a.trouble(err)
	}
	return &l, nil
}

// Withdraw removes the announcement of an address, unless another server has replaced it.
func (a *Accounts) Withdraw(address string) error {
	l, err := a.Listening()
	if err != nil || l == nil || l.Address != address {
		return err
	}
	if err := os.Remove(a.listeningPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a.trouble(err)
	}
	return nil
}
