package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// followEvery is how often followed output is read, because output causes no event.
const followEvery = 200 * time.Millisecond

// A follower prints the output of an item while it runs.
type follower struct {
	*program
	a       *project.Project
	journal *run.Journal
	path    string // the file that is printed; empty: none yet
	at      int64  // how much of the file was printed
}

// followOutput prints the output of an item as it comes, until the item ends. attempt 0 means the next one.
func (p *program) followOutput(ctx context.Context, a *project.Project, q *job.Queue, it *lockkeeper.Item, attempt int) error {
	if p.JSON {
		return &lockkeeper.InputError{Field: "follow", Reason: "has no form in JSON", Next: "lockkeeper job output " + it.ID + " --json, or job list --watch --json"}
	}
	ctx, stop := command.Interruptible(ctx)
	defer stop()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	f := &follower{program: p, a: a, journal: conduct.Journal(a)}
	waiting := ""
	for {
		found, err := q.Items(ctx, []string{it.ID})
		if err != nil || len(found) == 0 {
			return command.WatchEnd(ctx, err)
		}
		it = found[0]
		if attempt == 0 {
			attempt = it.Attempts
		}
		if says := it.ID + " is " + StateOf(it); says != waiting && waits(it) {
			fmt.Fprintln(p.Err, says)
			waiting = says
			if workers, err := q.Workers(ctx); err == nil && len(workers) == 0 {
				p.Advise(workerFor(it))
			}
		}
		if err := f.print(it, attempt); err != nil {
			return err
		}
		if it.Status == lockkeeper.ItemCompleted || it.Status == lockkeeper.ItemError || it.Attempts > attempt && run.FlowOf(it) == "" {
			return f.end(it)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return command.WatchEnd(ctx, nil)
		}
	}
}

// waits reports whether an item waits in the queue, or with its locks for a slot.
func waits(it *lockkeeper.Item) bool {
	return it.Status == lockkeeper.ItemQueued || it.IsHolding() && it.Stage != lockkeeper.StageRunning && it.WaitsOn != ""
}

// end says how a followed item ended. A pipe gets only the output.
func (f *follower) end(it *lockkeeper.Item) error {
	text := fmt.Sprintf("%s (%s) %s", it.ID, Title(it), StateOf(it))
	if took := view.ItemTook(it); took > 0 {
		text += " after " + term.Span(took)
	}
	_, err := fmt.Fprintln(f.Err, text)
	return err
}

// print prints what was added to the output. The output of a job starts again where it was cut.
func (f *follower) print(it *lockkeeper.Item, attempt int) error {
	file, err := f.open(it, attempt)
	var missing *lockkeeper.InputError
	if errors.As(err, &missing) || errors.Is(err, fs.ErrNotExist) {
		return nil // there is no output yet
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < f.at {
		f.at = 0
	}
	if _, err := file.Seek(f.at, io.SeekStart); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(file, info.Size()-f.at))
	f.at += int64(len(text))
	if err == nil && len(text) > 0 {
		_, err = fmt.Fprint(f.Out, f.Legible(string(text)))
	}
	return err
}

// open opens the output. For an item of a flow it opens the output of the last agent or check, and
// prints the phase first.
func (f *follower) open(it *lockkeeper.Item, attempt int) (*os.File, error) {
	if run.FlowOf(it) == "" {
		return job.Output(f.a, it, attempt)
	}
	path, phase, err := conduct.LastOutput(f.journal, it)
	if err != nil {
		return nil, err
	}
	if path != f.path {
		f.path, f.at = path, 0
		fmt.Fprintf(f.Err, "-- %s\n", term.Clean(phase))
	}
	return os.Open(path)
}
