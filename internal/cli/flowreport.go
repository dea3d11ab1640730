package cli

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/app"
)

func (p *program) reportCommand() *cobra.Command {
	var name, file string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "What a run changed, and what it cost",
		Long: `Report, as Markdown, what a flow did: what changed in which landing, what it cost
by phase and by unit, what was refused, what was decided, what failed, what had to
be tested again, and how the time was used. It reads what is kept, and changes
nothing.`,
		Example: `  lockkeeper report
  lockkeeper report --flow screens -o report.md
  lockkeeper report -o - > report.md
  lockkeeper report --json | jq .cost.usd`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("output") && file == "" {
				return &lockkeeper.InputError{Field: "output", Value: file, Reason: "empty", Next: "name a file, or leave it out"}
			}
			if file == "-" {
				file = ""
			}
			return p.with(cmd.Context(), func(a *app.App) error { return p.flowReport(cmd.Context(), a, name, file) })
		},
	}
	cmd.Flags().StringVar(&name, "flow", "", "the `flow`: controllers, screens or tasks (default: the one that ran last)")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write it to this `file`; -: to standard output")
	return cmd
}

func (p *program) flowReport(ctx context.Context, a *app.App, name, file string) error {
	if name == "" {
		last, err := a.CurrentRun()
		if err != nil {
			return err
		}
		if last == nil {
			return &lockkeeper.RefusedError{Act: "report", Reason: "nothing was run here yet", Next: "lockkeeper run"}
		}
		name = last.Flow
	}
	report, err := a.FlowReport(ctx, name)
	if err != nil {
		return err
	}
	if p.json && file == "" {
		return p.printJSON(report)
	}
	var text bytes.Buffer
	(&reportWriter{out: &text, r: report}).write()
	if file == "" {
		_, err = p.Out.Write(text.Bytes())
		return err
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(p.base(), file)
	}
	if err := durable.WriteFile(ctx, file, text.Bytes(), 0o644); err != nil {
		return &lockkeeper.InputError{Field: "output", Value: file, Reason: err.Error(), Next: "name a file that you may write"}
	}
	if p.json {
		return p.printJSON(map[string]any{"file": file, "report": report})
	}
	_, err = fmt.Fprintln(p.Out, file)
	return err
}
