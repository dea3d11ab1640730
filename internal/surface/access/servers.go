package access

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
)

// A Server is one announced server of a codebase.
type Server struct {
	Address string              `json:"address"`           // such as http://127.0.0.1:4711
	Command string              `json:"command,omitempty"` // the command that serves, such as serve or run
	Process *lockkeeper.Process `json:"process,omitempty"`
	Since   time.Time           `json:"since"`
}

// LoginLink returns the address that logs in with a ticket. Browsers do not send the part
// after the #, so the ticket reaches no log and no other page.
func (s Server) LoginLink(ticket string) string { return s.Address + "/login#" + ticket }

// servers is the directory of announced servers.
const servers = "servers"

// lasting is the command whose servers end only when a person ends them.
const lasting = "serve"

// Announce records a server, for logins. Withdraw takes the id that it returns.
func (a *Accounts) Announce(ctx context.Context, s Server) (id string, err error) {
	_, id = secret("")
	return id, a.write(ctx, filepath.Join(servers, id+".json"), s)
}

// Withdraw removes the record of a server that ends.
func (a *Accounts) Withdraw(id string) error {
	_, err := a.remove(servers, id+".json")
	return err
}

// Servers lists the running servers, the best one for a login first: those known to run, then
// those that outlast a run, then the newest. It removes the records of servers whose process is
// dead, such as one that was killed.
func (a *Accounts) Servers(liveness func(lockkeeper.Process) lockkeeper.Liveness) ([]Server, error) {
	files, err := os.ReadDir(filepath.Join(a.dir, servers))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, a.trouble(err)
	}
	type found struct {
		Server
		alive, lasts bool
	}
	var live []found
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".json") {
			continue // another process is writing this draft
		}
		s, err := read[Server](a, servers, f.Name())
		if err == nil && s == nil {
			continue // it has withdrawn
		}
		state := lockkeeper.ProcessDead // a damaged record is of no use
		if err == nil && s.Process != nil {
			state = liveness(*s.Process)
		}
		if state == lockkeeper.ProcessDead {
			if _, err := a.remove(servers, f.Name()); err != nil {
				return nil, err
			}
			continue
		}
		live = append(live, found{*s, state == lockkeeper.ProcessAlive, s.Command == lasting})
	}
	slices.SortFunc(live, func(a, b found) int {
		return cmp.Or(first(a.alive, b.alive), first(a.lasts, b.lasts), b.Since.Compare(a.Since), cmp.Compare(a.Address, b.Address))
	})
	list := []Server{}
	for _, f := range live {
		list = append(list, f.Server)
	}
	return list, nil
}

// first compares two properties: what has it comes first.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
