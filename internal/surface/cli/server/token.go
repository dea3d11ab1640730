package server

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/access"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage who may use the server",
		Long: `Name those who may use the server of this codebase, so that the record knows who
did what. Roles: viewer looks; operator decides and steers as well; admin takes
locks away from others as well; agent takes locks and writes under them, and never
decides. A token is sent as Authorization: Bearer, or typed on the login page.`,
		Example: `  lockkeeper token add ci --role agent
  lockkeeper token list
  lockkeeper token remove ci`,
		Args: command.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.tokenAddCommand(), p.tokenListCommand(), p.tokenRemoveCommand())
	return cmd
}

func (p *program) tokenAddCommand() *cobra.Command {
	role := ""
	cmd := &cobra.Command{
		Use:   "add NAME --role ROLE",
		Short: "Create a token for a person or a tool",
		Long: `Give somebody a name, a role and a token, which is printed once and not kept.
Agents may not do it.`,
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
				switch {
				case err != nil:
					return err
				case p.JSON:
					return p.PrintJSON(map[string]any{"name": args[0], "role": as, "token": token})
				}
				fmt.Fprintln(p.Out, token)
				fmt.Fprintf(p.Err, "%s is %s; the token is shown this once\n", args[0], as)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "viewer, operator, admin or agent")
	return cmd
}

func (p *program) tokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List everybody who may use the server",
		Example: `  lockkeeper token list --json`,
		Args:    command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error {
				list, err := access.Open(a.AccessDir()).List()
				switch {
				case err != nil:
					return err
				case p.JSON:
					return p.PrintJSON(list)
				case len(list) == 0:
					fmt.Fprintln(p.Out, "nobody yet")
					p.Advise("lockkeeper serve, or lockkeeper token add NAME --role operator")
					return nil
				}
				t := &term.Table{Heads: []string{"NAME", "ROLE", "LOGS IN", "SINCE"}}
				for _, e := range list {
					how := "by links alone"
					if e.HasToken {
						how = "with a token"
					}
					t.Add(term.Clean(e.Name), string(e.Role), how, e.Made.Local().Format("2006-01-02 15:04"))
				}
				t.Print(p.Out, p.Painter(p.Out))
				return nil
			})
		},
	}
}

func (p *program) tokenRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Revoke a token and its sessions",
		Long: `Take somebody's name away: from now on neither their token nor a browser that they
logged in with gets in. A stream that they follow ends within a quarter of a minute.`,
		Example: `  lockkeeper token remove ci`,
		Args:    command.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.AsPerson(cmd.Context(), "token remove", func(a *project.Project) error {
				if err := access.Open(a.AccessDir()).Dismiss(args[0]); err != nil {
					return err
				}
				if p.JSON {
					return p.PrintJSON(map[string]any{"name": args[0], "removed": true})
				}
				fmt.Fprintf(p.Out, "%s may not use the server any more\n", term.Clean(args[0]))
				return nil
			})
		},
	}
}
