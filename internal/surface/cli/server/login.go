package server

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/cli/command"
)

func (p *program) loginCommand() *cobra.Command {
	as := ""
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Print a link that logs you in to the running server",
		Long: `Print a link that logs you in to the running server of this codebase. The link works
once, within ten minutes. You log in with your own name as an admin, or with --as under
a name in lockkeeper token list and its role. Agents cannot run it.`,
		Example: `  lockkeeper login
  xdg-open "$(lockkeeper login)"
  lockkeeper login --as guest`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.AsPerson(cmd.Context(), "login", func(a *project.Project) error { return p.login(cmd.Context(), a, as) })
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "log in under this `name` (default: your own, as an admin)")
	return cmd
}

func (p *program) login(ctx context.Context, a *project.Project, as string) error {
	book := access.Open(a.AccessDir())
	at, err := p.server(a, book)
	if err != nil {
		return err
	}
	who, err := p.account(ctx, book, as)
	if err != nil {
		return err
	}
	ticket, err := book.Ticket(ctx, who, p.Now())
	if err != nil {
		return err
	}
	link := at.LoginLink(ticket)
	if p.JSON {
		return p.PrintJSON(map[string]any{"link": link, "name": who.Name, "role": who.Role, "expires": p.Now().Add(access.TicketLife).UTC()})
	}
	fmt.Fprintln(p.Out, link)
	fmt.Fprintf(p.Err, "logs %s in as %s once, within %d minutes\n", who.Name, who.Role, int(access.TicketLife/time.Minute))
	return nil
}

// server returns the running server of this codebase.
func (p *program) server(a *project.Project, book *access.Accounts) (*access.Listening, error) {
	at, err := book.Listening()
	if err != nil {
		return nil, err
	}
	if at == nil || at.Process == nil || a.Host.Liveness(*at.Process) == lockkeeper.ProcessDead {
		return nil, &lockkeeper.RefusedError{Act: "login", Reason: "no server runs for this codebase", Next: "lockkeeper serve, which prints a link"}
	}
	return at, nil
}

// account returns the account to log in: the named one, or the caller's own.
func (p *program) account(ctx context.Context, book *access.Accounts, as string) (access.Person, error) {
	if as == "" {
		return book.Member(ctx, p.ownName(), access.Admin)
	}
	list, err := book.List()
	if err != nil {
		return access.Person{}, err
	}
	var known []string
	for _, e := range list {
		if e.Name == as {
			return book.Member(ctx, as, e.Role)
		}
		known = append(known, e.Name)
	}
	return access.Person{}, &lockkeeper.InputError{Field: "as", Value: as, Reason: "unknown name", Next: "use one of " + strings.Join(known, ", ") + ", or lockkeeper token add " + as + " --role viewer"}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// ownName returns the login name of the caller, in the form of account names.
func (p *program) ownName() string {
	name := ""
	for _, variable := range []string{"USER", "LOGNAME"} {
		if login, _ := p.Lookup(variable); login != "" {
			name = login
		}
	}
	if account, err := user.Current(); name == "" && err == nil {
		name = account.Username
	}
	name = strings.Trim(notInNames.ReplaceAllString(name, "-"), "-._")
	if access.CheckName(name) != nil {
		name = fmt.Sprintf("uid-%d", os.Getuid())
	}
	return name
}
