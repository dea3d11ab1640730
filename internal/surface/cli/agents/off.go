package agents

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

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
	if _, err := strconv.Atoi(text); err == nil { // ambiguous: seconds or minutes
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
	if err := p.Confirm("off", "Interactive agents can write over each other until "+session.Clock(p.Now().Add(time.Duration(d)), p.Now())+".", "off"); err != nil {
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
