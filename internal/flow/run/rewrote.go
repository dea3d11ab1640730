package run

import (
	"context"
	"fmt"
	"io"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
)

// notice checks which files a command that passed has changed. If it changed a file of the
// batch, the command fails. For other tracked files notice warns people.
func (l *batchRun) notice(ctx context.Context, c checks, run *flow.CheckRun, changes []workspace.Change, out io.Writer) error {
	if run.Exit != 0 {
		return nil
	}
	var own, others []workspace.Change
	for _, change := range changes {
		stored, err := l.isStoredAs(change)
		switch {
		case err != nil:
			return err
		case stored:
		case slices.Contains(l.paths(), change.Path):
			own = append(own, change)
		case change.Was != nil:
			others = append(others, change)
		}
	}
	for _, f := range l.files {
		if slices.ContainsFunc(changes, func(c workspace.Change) bool { return c.Path == f.Path }) {
			continue
		}
		base, err := l.w.Base(f.Path)
		if err != nil {
			return err
		}
		if base != f.New { // the command reverted the change of the batch
			own = append(own, workspace.Change{Path: f.Path})
		}
	}
	if len(own) > 0 {
		run.Exit = exitRewrote
		_, err := fmt.Fprintf(out, "\nthe command changed %s, which the batch changes: what it tested is not what would land\n", someOf(own))
		return err
	}
	ignored, err := l.w.Ignored(ctx, others)
	if err != nil {
		return err
	}
	tracked := others[:0]
	for i, change := range others {
		if !ignored[i] {
			tracked = append(tracked, change)
		}
	}
	if len(tracked) > 0 {
		l.p.news(NewsWarning, l.ask(c.Phase.Name, ""), lockkeeper.JoinNext(fmt.Sprintf("%q changed %s, which is undone: %s", run.Command, counted(len(tracked), "file"), someOf(tracked)),
			"check whether it passes only because of that"))
	}
	return nil
}

// exitRewrote is the exit status recorded for a command that passed but changed a file of the
// batch.
const exitRewrote = 1
