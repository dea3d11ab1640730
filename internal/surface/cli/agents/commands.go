package agents

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/hook"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/mcp"
	"lockkeeper/internal/surface/view"
)

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.initCommand(), p.uninitCommand(), p.hookCommand(), p.mcpCommand(), p.lspCommand(), p.offCommand()}
}

func (p *program) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook AGENT",
		Short: "Answer a hook of an interactive agent",
		Long: `Answer a hook of an interactive agent: claude-code, codex, gemini or opencode. It reads the agent's
call from standard input. Before a write it locks the file for the session, or refuses
the write with a reason: as JSON in the agent's form, or with exit code 2. After a
command it checks the files that others hold. At the end of a turn it releases
everything. An error before a write refuses it.

Agents run this command; lockkeeper init sets that up.`,
		Example: `  lockkeeper hook claude-code <call.json`,
		Args:    command.Exactly(1, "the agent: claude-code, codex, gemini or opencode"),
		RunE: func(cmd *cobra.Command, args []string) error {
			code := hook.Main(args[0], hook.Process{In: p.In, Out: p.Out, Err: p.Err, Env: p.Lookup, Store: p.Store})
			if code == command.ExitOK {
				return nil
			}
			return &command.ExitError{Code: code}
		},
	}
}

func (p *program) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve the Model Context Protocol to an agent",
		Long: `Serve the Model Context Protocol to an agent over standard input and output. The agent
can inspect the locks, claim files, write them through the gate, defer changes, and ask for more
files. It acts for the session that started it, as the hooks of that session do. Its
claims are released when the agent ends. Outside of a codebase with locks it has no
tools.

Agents start this command; lockkeeper init sets that up. For agents on other machines,
lockkeeper serve has the same protocol at /mcp, for tokens of the role agent.`,
		Example: `  claude mcp add lockkeeper -- lockkeeper mcp`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(cmd.Context())
			defer stop()
			if root, err := project.RootOf(p.Base()+"/.", p.Lookup); err != nil {
				return err
			} else if root == "" { // not a failure: agents start this command in every directory
				return mcp.ServeNowhere(ctx, project.Version(), p.In, p.IO.Out)
			}
			return p.WithSettings(ctx, p.ForOthers(), func(a *project.Project) error {
				return session.Open(a).Watched(ctx, session.Watcher{Failed: p.Report}, func(ctx context.Context) error {
					return mcp.New(mcp.Options{App: a, View: view.New(a), Version: project.Version()}).Serve(ctx, p.In, p.IO.Out)
				})
			})
		},
	}
}

type offOptions struct {
	reason string
	end    bool
}

func (p *program) offCommand() *cobra.Command {
	var o offOptions
	cmd := &cobra.Command{
		Use:   "off TIME",
		Short: "Disable write checks for interactive agents temporarily",
		Long: `Disable the write checks of interactive agents for at most a day. It asks you to type an
answer, so it needs a terminal; agents cannot run it. Meanwhile every session shows a
banner, and the audit trail records it. The gate, runs and jobs are still checked. --end
enables the checks again.`,
		Example: `  lockkeeper off 30m --reason "the store is being moved"
  lockkeeper off --end`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.end {
				return command.Exactly(0, "no time with --end")(cmd, args)
			}
			return command.Exactly(1, "how long, such as 30m")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.AsPerson(cmd.Context(), "off", func(a *project.Project) error {
				if o.end {
					return p.on(cmd.Context(), a)
				}
				return p.off(cmd.Context(), a, args[0], o.reason)
			})
		},
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for the audit trail")
	cmd.Flags().BoolVar(&o.end, "end", false, "enable the checks again")
	return cmd
}

func (p *program) off(ctx context.Context, a *project.Project, text, reason string) error {
	if _, err := strconv.Atoi(text); err == nil { // the unit of a bare number is ambiguous: seconds or minutes
		return &lockkeeper.InputError{Field: "time", Value: text, Reason: "without a unit", Next: "lockkeeper off " + text + "m"}
	}
	var d term.Duration
	if err := d.Set(text); err != nil {
		return &lockkeeper.InputError{Field: "time", Value: text, Reason: err.Error(), Next: "lockkeeper off 30m"}
	}
	registry := session.Open(a)
	if err := registry.MaySwitchOff(ctx, p.Person(), time.Duration(d)); err != nil {
		return err
	}
	if err := p.Agree("off", "Interactive agents can write over each other until "+session.Clock(p.Now().Add(time.Duration(d)), p.Now())+"."); err != nil {
		return err
	}
	pause, err := registry.SwitchOff(ctx, p.Person(), reason, time.Duration(d))
	if err != nil {
		return err
	}
	p.Advise("lockkeeper off --end, when you are done")
	return p.Answer(pause, "write checks of interactive agents are off until %s", term.Stamp(pause.Until))
}

func (p *program) on(ctx context.Context, a *project.Project) error {
	ended, err := session.Open(a).SwitchOn(ctx)
	if err != nil {
		return err
	}
	text := "write checks of interactive agents are on again"
	if !ended {
		text = "write checks of interactive agents were not off"
	}
	return p.Answer(map[string]bool{"ended": ended}, "%s", text)
}
