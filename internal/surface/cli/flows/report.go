package flows

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

func (p *program) reportCommand() *cobra.Command {
	var name, file string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show what a run changed and what it cost",
		Long: `Report as Markdown what a flow did: the changes of each landing, the cost by phase and by
unit, what was refused, decided, failed or tested again, and how the time was used. Units
are grouped by their outcome, and failures by their cause. It changes nothing.`,
		Example: `  lockkeeper report
  lockkeeper report --flow screens -o report.md
  lockkeeper report -o - > report.md
  lockkeeper report --json | jq .cost.usd`,
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
	cmd.Flags().StringVar(&name, "flow", "", "the `flow`: "+strings.Join(flow.Names(), ", ")+" (default: the one that ran last)")
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
			return &lockkeeper.RefusedError{Act: "report", Reason: "no flow has run here yet", Next: conduct.FirstRun(a)}
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
	v, err := view.New(a).Run(ctx, name)
	if err != nil {
		return err
	}
	failed, err := conduct.Failures(ctx, a, name)
	if err != nil {
		return err
	}
	causes, err := conduct.NewCauseReader(a).Causes(failed)
	if err != nil {
		p.Note("%s", err)
	}
	var text bytes.Buffer
	(&reportWriter{out: &text, r: report, now: v.Line, causes: causes}).write()
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

// reportWriter writes a report as Markdown, to a writer that never fails.
type reportWriter struct {
	out io.Writer
	r   *report.Report
	now view.RunLine

	causes []conduct.Cause // of the failures
}

func (w *reportWriter) write() {
	r := w.r
	w.line("# Report of the flow %s", r.Flow)
	if r.Run != nil {
		state := string(w.now.State)
		if !r.Run.Ended.IsZero() {
			state = "finished " + term.Stamp(r.Run.Ended)
		}
		if w.now.Failed > 0 {
			state += fmt.Sprintf(", %d failed", w.now.Failed)
		}
		w.line("\nRun %s, started %s, %s.", r.Run.ID, term.Stamp(r.Run.Began), state)
		if said := r.Run.Prediction; said != nil {
			w.line("\nTime: %s.", said)
		}
	}
	if r.Baseline != "" {
		w.line("\n**The tests failed on the unchanged tree, before the first batch: %s**", term.Clean(r.Baseline))
	}
	w.changes()
	w.costs()
	w.refused()
	w.line("\n## Decisions\n")
	w.head("TODO", "DEFER", "REJECT", "open")
	w.row(fmt.Sprint(r.Decisions.Todo), fmt.Sprint(r.Decisions.Defer), fmt.Sprint(r.Decisions.Reject), fmt.Sprint(r.Decisions.Open))
	w.troubles()
	w.times()
}

func (w *reportWriter) line(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }

// row writes a line of a table. It escapes text that would end a cell.
func (w *reportWriter) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(term.Clean(strings.Join(strings.Fields(c), " ")))
	}
	w.line("| %s |", strings.Join(cells, " | "))
}

func (w *reportWriter) head(titles ...string) {
	w.row(titles...)
	w.line("|%s", strings.Repeat(" --- |", len(titles)))
}

func (w *reportWriter) changes() {
	w.line("\n## What changed\n")
	files := map[string]bool{}
	landed, untested, why, before, what := 0, 0, "", 0, ""
	for b := range landedBatches(w.r) {
		landed++
		if b.LandedUntested() {
			untested, why = untested+1, b.Untested
		}
		if b.LandedAsBefore() {
			before, what = before+1, b.AsBefore
		}
		for _, f := range b.Files {
			files[f] = true
		}
	}
	w.line("%d %s landed and changed %s.", landed, term.Plural(landed, "batch", "batches"), term.Counted(len(files), "file"))
	if untested > 0 {
		w.line("\n**%s**", term.Clean(untestedLine(untested, landed, why)))
	}
	if before > 0 {
		w.line("\n**%s**", term.Clean(asBeforeLine(before, landed, what)))
	}
	for _, o := range report.Outcomes() {
		if units := w.r.ByOutcome(o); len(units) > 0 {
			w.line("\n## Outcome: %s (%s)", strings.ReplaceAll(string(o), "_", " "), term.Counted(len(units), "unit"))
			w.units(units)
		}
	}
}

// units writes the batches of units.
func (w *reportWriter) units(units []report.Unit) {
	for _, u := range units {
		w.line("\n### %s: %s\n", term.Clean(u.Name), term.Clean(statusWords(u.Status, u.Failed)))
		if len(u.Batches) == 0 {
			w.line("No batches.")
			continue
		}
		w.head("Batch", "Status", "Landing", "Commit", "Fixes", "Files", "Summary")
		for _, b := range u.Batches {
			status, landing, commit := statusWords(b.Status, b.Failed), "-", "-"
			if b.Landed != nil {
				landing = cmp.Or(strings.Trim(fmt.Sprint(b.Landed.Landings), "[]"), "-")
				if b.Landed.Commit != "" {
					commit = b.Landed.Commit[:min(12, len(b.Landed.Commit))]
				}
				if b.Landed.Undone != nil {
					status = "undone by " + b.Landed.Undone.By
				}
			}
			name := b.ID
			if b.Title != "" && b.Title != b.ID {
				name += " " + b.Title
			}
			w.row(name, status, landing, commit, fmt.Sprint(b.Fixes), strings.Join(b.Files, ", "), b.Summary)
		}
	}
}

// statusWords returns the status of a unit or batch for people.
func statusWords(status string, failed bool) string {
	if failed || status == flow.Failed {
		return "failed"
	}
	return strings.ReplaceAll(status, "_", " ")
}

func (w *reportWriter) costs() {
	r := w.r
	w.line("\n## What it cost\n")
	w.line("$%.2f, %d tokens, %s, of which %d failed.", r.Cost.USD, r.Cost.Tokens, term.Counted(r.Cost.Calls, "call"), r.Cost.Failed)
	if r.Run != nil {
		w.line("Of that, in the last run: $%.2f, %s.", r.RunCost.USD, term.Counted(r.RunCost.Calls, "call"))
	}
	cost := func(name string, c report.Cost) {
		w.row(name, fmt.Sprintf("%.2f", c.USD), fmt.Sprint(c.Tokens), fmt.Sprint(c.Calls), fmt.Sprint(c.Failed), term.Span(c.Took))
	}
	head := func(what string) {
		w.line("")
		w.head(what, "$", "Tokens", "Calls", "Failed", "Agents' time")
	}
	head("Phase")
	for _, p := range r.Phases {
		cost(p.Phase, p.Cost)
	}
	head("Unit")
	for _, u := range r.Units {
		cost(u.Name, u.Cost)
	}
}

func (w *reportWriter) refused() {
	w.line("\n## What was refused\n")
	if len(w.r.Gaps) == 0 {
		w.line("Nothing: agents changed only what was planned.")
		return
	}
	w.head("Batch", "Path", "Phase", "Reason", "Kept as", "Answer")
	for _, g := range w.r.Gaps {
		answer := "open"
		if g.Answer != "" {
			answer = g.Answer + ", " + g.By
		}
		w.row(g.Unit+"/"+g.Batch, g.Path, g.Phase, g.Reason, g.Rescue, answer)
	}
}

func (w *reportWriter) troubles() {
	w.line("\n## What failed\n")
	if len(w.r.Failures) == 0 {
		w.line("No item failed.")
	} else {
		w.byCause()
		w.head("Item", "Work", "Phase", "Since", "Reason")
		for _, f := range w.r.Failures {
			w.row(f.Item, f.Work, f.Phase, term.Stamp(f.At), errorLine(f.Reason))
		}
	}
	w.line("\n## What was tested again because files changed\n")
	if len(w.r.Rechecks) == 0 {
		w.line("Nothing.")
		return
	}
	w.head("Batch", "At", "Changed")
	for _, c := range w.r.Rechecks {
		w.row(c.Unit+"/"+c.Batch, term.Stamp(c.At), strings.Join(slices.Compact(c.Moved), ", "))
	}
}

// byCause counts the failures of each cause.
func (w *reportWriter) byCause() {
	if len(w.causes) == 0 {
		return
	}
	w.head("Cause", "Failures", "What", "Retry all")
	for _, c := range w.causes {
		w.row(c.ID, fmt.Sprint(len(c.Failures)), c.Title, "lockkeeper decide retry --cause "+c.ID)
	}
	w.line("")
}

func (w *reportWriter) times() {
	t := w.r.Times
	w.line("\n## Time\n")
	if t.First.IsZero() {
		w.line("No agent has run yet.")
		return
	}
	w.head("First call", "Last call", "Agents running", "At once, on average", "Most at once", "Waited in the queue", "Of that, for locks")
	w.row(term.Stamp(t.First), term.Stamp(t.Last), term.Span(t.Busy), fmt.Sprintf("%.1f", t.Agents), fmt.Sprint(t.Most), term.Span(t.Queued), term.Span(t.Blocked))
}

// landedBatches visits the batches of a report that changed the codebase and were not undone.
func landedBatches(r *report.Report) iter.Seq[*report.Batch] {
	return func(yield func(*report.Batch) bool) {
		for _, u := range r.Units {
			for i := range u.Batches {
				if b := &u.Batches[i]; b.Landed != nil && b.Landed.Undone == nil && b.Status != flow.NoChange && !yield(b) {
					return
				}
			}
		}
	}
}

// untestedLine reports batches that landed without a test.
func untestedLine(untested, landed int, why string) string {
	if untested == landed {
		return "nothing was tested: " + why
	}
	return fmt.Sprintf("%d of %d %s not tested: %s", untested, landed, term.Plural(untested, "batch was", "batches were"), why)
}

// asBeforeLine reports batches that landed although their tests fail, as they did before the run.
func asBeforeLine(before, landed int, what string) string {
	return fmt.Sprintf("the tests of %d of %d %s fail as before the run: %s", before, landed, term.Plural(landed, "landed batch", "landed batches"), what)
}
