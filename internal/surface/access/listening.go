package access

import (
	"context"
	"time"

	"lockkeeper"
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

// serverFile is the file of the announced address.
const serverFile = "server.json"

// Announce records the address of the server, for logins. The last call counts.
func (a *Accounts) Announce(ctx context.Context, l Listening) error {
	return a.write(ctx, serverFile, l)
}

// Listening returns the last announced address; nil: none. The server may have ended since:
// check its process.
func (a *Accounts) Listening() (*Listening, error) { return read[Listening](a, serverFile) }

// Withdraw removes the announcement of an address, unless another server has replaced it.
func (a *Accounts) Withdraw(address string) error {
	l, err := a.Listening()
	if err == nil && l != nil && l.Address == address {
		_, err = a.remove(serverFile)
	}
	return err
}
