package server

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) tokenCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "token",
		Short: "Manage who may use the server",
		Long: `Manage who may use the server of this codebase. The audit trail records each name. Roles:

  viewer    reads
  operator  reads, answers decisions and controls runs
  admin     does all that, and releases locks of other holders
  agent     acquires locks and writes under them, and never decides

Send a token as Authorization: Bearer, or type it on the login page.`,
		Example: `  lockkeeper token add ci --role agent
  lockkeeper token list
  lockkeeper token remove ci`,
	}, p.tokenAddCommand(), p.tokenListCommand(), p.tokenRemoveCommand())
}

func (p *program) tokenAddCommand() *cobra.Command {
	role := ""
	cmd := &cobra.Command{
		Use:   "add NAME --role ROLE",
		Short: "Create a token for a person or a tool",
		Long: `Create an account with a role, and print its token. The token is not stored and cannot be
shown again. Agents cannot run it.`,
		Example: `  lockkeeper token add ci --role agent > ci.token
  curl -H "Authorization: Bearer $(cat ci.token)" http://127.0.0.1:4711/api/v1/grants`,
		Args: command.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			as, err := access.ParseRole(role)
			if err != nil {
				return err
			}
			return p.AsPerson(cmd.Context(), "token add", func(a *project.Project) error {
				token, err := access.Open(a.AccessDir()).Add(cmd.Context(), args[0], as)
				if err != nil {
					return err
				}
				return p.Show(map[string]any{"name": args[0], "role": as, "token": token}, func() {
					fmt.Fprintln(p.Out, token)
					fmt.Fprintf(p.Err, "%s is %s; the token is not shown again\n", args[0], as)
				})
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "viewer, operator, admin or agent")
	return cmd
}

func (p *program) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List who may use the server",
		Example: `  lockkeeper token list --json`,
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, _ []string) error {
			list, err := access.Open(a.AccessDir()).List()
			switch {
			case err != nil:
				return err
			case p.JSON:
				return p.PrintJSON(list)
			case len(list) == 0:
				fmt.Fprintln(p.Out, "no accounts")
				p.Advise("lockkeeper serve, or lockkeeper token add NAME --role operator")
				return nil
			}
			t := &term.Table{Heads: []string{"NAME", "ROLE", "LOGS IN", "SINCE"}}
			for _, e := range list {
				how := "by links only"
				if e.HasToken {
					how = "with a token"
				}
				t.Add(term.Clean(e.Name), string(e.Role), how, e.Made.Local().Format("2006-01-02 15:04"))
			}
			t.Print(p.Out, p.Painter(p.Out))
			return nil
		}),
	}
}

func (p *program) tokenRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Revoke a token and its sessions",
		Long: `Remove an account. Its token and its logged-in browsers stop working at once; its open
event streams end within 15 seconds.`,
		Example: `  lockkeeper token remove ci`,
		Args:    command.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.AsPerson(cmd.Context(), "token remove", func(a *project.Project) error {
				if err := access.Open(a.AccessDir()).Revoke(args[0]); err != nil {
					return err
				}
				return p.Answer(map[string]any{"name": args[0], "removed": true}, "%s can no longer use the server", term.Clean(args[0]))
			})
		},
	}
}

func (p *program) loginCommand() *cobra.Command {
	as := ""
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Print a link that logs you in to the running server",
		Long: `Print a link that logs you in to the running server of this codebase. The link works
once, within ten minutes. You log in with your own name as an admin, or with --as under
a name in lockkeeper token list and its role. Agents cannot run it.

If several servers run, such as one of serve and one of run, the link names one that
outlasts the runs, and the others are listed. A browser that has logged in at one is
logged in at the others, if they have the same host name and scheme.`,
		Example: `  lockkeeper login
  xdg-open "$(lockkeeper login)"
  lockkeeper login --as guest`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.AsPerson(cmd.Context(), "login", func(a *project.Project) error { return p.login(cmd.Context(), a, as) })
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "log in under this `name` (default: your own, as an admin)")
	return cmd
}

func (p *program) login(ctx context.Context, a *project.Project, as string) error {
	book := access.Open(a.AccessDir())
	running, err := book.Servers(a.Host.Liveness)
	if err != nil {
		return err
	}
	if len(running) == 0 {
		return &lockkeeper.RefusedError{Act: "login", Reason: "no server runs for this codebase", Next: "lockkeeper serve, which prints a link"}
	}
	who, err := p.account(ctx, book, as)
	if err != nil {
		return err
	}
	ticket, err := book.Ticket(ctx, who, p.Now())
	if err != nil {
		return err
	}
	link := running[0].LoginLink(ticket)
	return p.Show(map[string]any{"link": link, "name": who.Name, "role": who.Role, "expires": p.Now().Add(access.TicketLife).UTC(), "servers": running}, func() {
		fmt.Fprintln(p.Out, link)
		fmt.Fprintf(p.Err, "logs %s in as %s once, within %d minutes\n", who.Name, who.Role, int(access.TicketLife/time.Minute))
		for _, other := range running[1:] {
			fmt.Fprintf(p.Err, "also served at %s by lockkeeper %s, since %s\n", other.Address, other.Command, term.Stamp(other.Since))
		}
	})
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
	name := strings.Trim(notInNames.ReplaceAllString(p.Login(), "-"), "-._")
	if access.CheckName(name) != nil {
		name = fmt.Sprintf("uid-%d", os.Getuid())
	}
	return name
}
