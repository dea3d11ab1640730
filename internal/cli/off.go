package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/session"
)

type offOptions struct {
	reason string
	end    bool
}

func (p *program) offCommand() *cobra.Command {
	var o offOptions
	cmd := &cobra.Command{
		Use:   "off TIME",
		Short: "Let interactive agents write unchecked for a time",
		Long: `Let the hooks of interactive agents pass everything for a time, at most a day. It
asks you to type an answer, on a terminal; agents may not do it. Every session
shows a banner meanwhile, and it is in the audit trail. The gate, runs and jobs
are checked as ever. With --end it is over at once.`,
		Example: `  lockkeeper off 30m --reason "the store is being moved"
  lockkeeper off --end`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.end {
				return exactly(0, "no time with --end")(cmd, args)
			}
			return exactly(1, "how long, such as 30m")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.asPerson(cmd.Context(), "off", func(a *app.App) error {
				if o.end {
					return p.on(cmd.Context(), a)
				}
				return p.off(cmd.Context(), a, args[0], o.reason)
			})
		},
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for the audit trail")
	cmd.Flags().BoolVar(&o.end, "end", false, "check again from now on")
	return cmd
}

func (p *program) off(ctx context.Context, a *app.App, text, reason string) error {
	if _, err := strconv.Atoi(text); err == nil { // of which some expect seconds, and some minutes
		return &lockkeeper.InputError{Field: "time", Value: text, Reason: "without a unit", Next: "lockkeeper off " + text + "m"}
	}
	var d duration
	if err := d.Set(text); err != nil {
		return &lockkeeper.InputError{Field: "time", Value: text, Reason: err.Error(), Next: "lockkeeper off 30m"}
	}
	book := session.Open(a)
	if err := book.MaySwitchOff(ctx, p.person(), time.Duration(d)); err != nil {
		return err
	}
	if err := p.confirm("off", "Interactive agents can write over each other until "+session.Clock(p.Now().Add(time.Duration(d)), p.Now())+".", "off"); err != nil {
		return err
	}
	pause, err := book.SwitchOff(ctx, p.person(), reason, time.Duration(d))
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(pause)
	}
	_, err = fmt.Fprintf(p.Out, "the hooks of agents check nothing until %s\nnext: lockkeeper off --end, when you are done\n", stamp(pause.Until))
	return err
}

func (p *program) on(ctx context.Context, a *app.App) error {
	ended, err := session.Open(a).SwitchOn(ctx)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(map[string]bool{"ended": ended})
	}
	text := "the hooks of agents check everything again"
	if !ended {
		text = "the hooks of agents were not off"
	}
	_, err = fmt.Fprintln(p.Out, text)
	return err
}
