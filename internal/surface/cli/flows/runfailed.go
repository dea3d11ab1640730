package flows

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (r *flowRun) failures(ctx context.Context, st *run.State) {
	for _, u := range st.Units {
		inBatch := false
		for _, b := range u.Batches {
			if b.Status == flow.Failed {
				inBatch = true
				r.failure(ctx, workName(u.Name, b.ID), b.Item, b.Error)
			}
		}
		if u.Status == flow.Failed && !inBatch {
			r.failure(ctx, u.Name, u.Item, u.Error)
		}
	}
}

// failure prints why a piece of work failed, the last lines of the output that failed, and the command for all of it.
func (r *flowRun) failure(ctx context.Context, name, item, reason string) {
	reason, _, _ = command.CutNext(firstLine(reason))
	reason, _, hasOutput := command.CutLast(reason, job.OutputSep)
	if item != "" {
		name += " (" + item + ")"
	}
	fmt.Fprintf(r.Out, "  %s %s: %s\n", r.Painter(r.Out)(term.Red, "failed"), term.Clean(name), term.Clean(reason))
	if !hasOutput || item == "" {
		return
	}
	for _, line := range r.lastOutput(ctx, item) {
		fmt.Fprint(r.Out, "    | "+command.CleanLines(line+"\n"))
	}
	fmt.Fprintf(r.Out, "    more: lockkeeper job output %s\n", item)
}

// outputLines is how many lines of a failed check the end of a run shows, and outputBytes how much of it is read.
const (
	outputLines = 8
	outputBytes = 8 << 10
)

// lastOutput returns the last lines of the output of an item that are not blank. It returns none if the output cannot
// be read, because the command for it says why.
func (r *flowRun) lastOutput(ctx context.Context, item string) []string {
	found, err := r.q.Items(ctx, []string{item})
	if err != nil || len(found) == 0 {
		return nil
	}
	path, _, err := conduct.LastOutput(conduct.Journal(r.a), found[0])
	if err != nil {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-outputBytes), outputBytes))
	if err != nil {
		return nil
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	if len(lines) == 0 {
		return []string{"(no output)"}
	}
	return lines[max(0, len(lines)-outputLines):]
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
