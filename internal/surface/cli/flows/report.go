package flows

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

func (p *program) reportCommand() *cobra.Command {
	var name, file string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show what a run changed and what it cost",
		Long: `Report as Markdown what a flow did: the changes of each landing, the cost by phase and by
unit, what was refused, decided, failed or tested again, and how the time was used. It
changes nothing.`,
		Example: `  lockkeeper report
  lockkeeper report --flow screens -o report.md
  lockkeeper report -o - > report.md
  lockkeeper report --json | jq .cost.usd`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("output") && file == "" {
				return &lockkeeper.InputError{Field: "output", Value: file, Reason: "empty", Next: "name a file, or omit the flag"}
			}
			if file == "-" {
				file = ""
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.flowReport(cmd.Context(), a, name, file) })
		},
	}
	cmd.Flags().StringVar(&name, "flow", "", "the `flow`: controllers, screens or tasks (default: the one that ran last)")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write the report to this `file`; - is standard output")
	return cmd
}

func (p *program) flowReport(ctx context.Context, a *project.Project, name, file string) error {
	if name == "" {
		last, err := conduct.CurrentRun(a)
		if err != nil {
			return err
		}
		if last == nil {
			return &lockkeeper.RefusedError{Act: "report", Reason: "no flow has run here yet", Next: "lockkeeper run"}
		}
		name = last.Flow
	}
	report, err := report.Read(ctx, a, name)
	if err != nil {
		return err
	}
	if p.JSON && file == "" {
		return p.PrintJSON(report)
	}
	var text bytes.Buffer
	(&reportWriter{out: &text, r: report}).write()
	if file == "" {
		_, err = p.Out.Write(text.Bytes())
		return err
	}
	file = p.Path(file)
	if err := durable.WriteFile(ctx, file, text.Bytes(), 0o644); err != nil {
		return &lockkeeper.InputError{Field: "output", Value: file, Reason: err.Error(), Next: "name a file that you may write"}
	}
	return p.Answer(map[string]any{"file": file, "report": report}, "%s", file)
}
