package pipeline

import (
	"context"
	"errors"
	"fmt"

	"lockkeeper/internal/flow"
	"lockkeeper/sched"
)

// verify lets an agent compare the original with what became of it. It changes nothing.
func (l *life) verify(ctx context.Context) error {
	q := l.ask("verify", "verdict")
	q.purpose += fmt.Sprintf("-%x", sumOf(l.files))[:9]
	a, w, err := l.p.takeOver(ctx, q)
	if w != nil {
		err = errors.Join(err, w.Close(ctx, false)) // it holds what this one does
	}
	if err != nil {
		return err
	}
	if a == nil {
		if err := l.t.Phase(ctx, "verify", sched.PoolAgent); err != nil {
			return err
		}
		changes, err := diffOf(l.files, l.folder)
		if err != nil {
			return err
		}
		if q.prompt, err = l.prompt(ctx, "verify", flow.Ask{Diff: changes, Untested: skippedOf(l.batch.Tested), NoCI: skippedOf(l.batch.CI)}); err != nil {
			return err
		}
		l.p.news(NewsStarted, q, "")
		if a, err = l.p.ask(ctx, l.t, q, l.w); err != nil {
			return err
		}
		if err := l.putBack(ctx, q); err != nil {
			return err
		}
	}
	verdict, err := answer[flow.Verdict](a.Result)
	if err != nil {
		return err
	}
	if verdict.Verdict != "pass" {
		err := fmt.Errorf("verification: %s; %d issues: %s", verdict.Report, len(verdict.Issues), first(verdict.Issues))
		return errors.Join(err, l.p.used(a))
	}
	if err := l.p.opt.Book.PutVerification(ctx, l.unit.Name, l.batch.ID, flow.Verification{Verdict: verdict, Files: l.files}, []flow.Call{a.call}); err != nil {
		return err
	}
	l.p.news(NewsDone, q, "")
	return l.p.used(a)
}

func first(list []string) string {
	if len(list) == 0 {
		return "none named"
	}
	return list[0]
}

// putBack undoes what an agent changed that was only to read: what was tested is what
// lands. What it made is kept.
func (l *life) putBack(ctx context.Context, q question) error {
	l.p.wishesOf(l.t, q) // they are told and kept; no document of this phase has room for them
	changes, err := l.w.Changes(ctx)
	if err != nil {
		return err
	}
	for _, c := range changes {
		stored, err := l.isStoredAs(c)
		if err != nil {
			return err
		}
		if stored {
			continue
		}
		gap, err := l.p.keepGap(ctx, l.t, q, l.w, c, errReadOnly(q.phase))
		if err != nil {
			return err
		}
		l.p.news(NewsGap, q, gap.Path+": "+gap.Reason)
	}
	return l.reset(ctx)
}

// skippedOf returns why a check had nothing to run. It returns "" if the check passed.
func skippedOf(c *flow.Checked) string {
	if c == nil {
		return "there is no record of them"
	}
	return c.Skipped
}
