package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/failure"
	"lockkeeper/sched"
)

// progressFile stores how far a check phase got, so that a crash loses no fix.
const progressFile = "progress.json"

// A checkState is the state of an unfinished check phase.
type checkState struct {
	Phase string       `json:"phase"`
	From  string       `json:"from"` // the hash of the applied files; if it differs, the phase starts again
	Done  flow.Checked `json:"done"`
	Calls []flow.Call  `json:"calls"`
	Spent bool         `json:"spent"` // the limit of fixes is reached; a retry by a person counts from 0

	// Answered is the time of the last returned review that an agent has answered.
	Answered time.Time `json:"answered,omitzero"`
}

// checks are the commands that a batch must pass in one phase.
type checks struct {
	flow.Phase
	commands []string
	skipped  string // why there are no commands
	max      int    // how often an agent may fix failures of the commands
}

// checksOf returns the commands of a check phase: the configured ones, or the tests of the batch
// or of its unit.
func (l *batchRun) checksOf(phase flow.Phase) checks {
	c := checks{Phase: phase, max: l.p.opt.Limits.FixesOf(phase.Name), commands: l.p.opt.Checks.Commands[phase.Name]}
	if phase.Commands == "" {
		c.commands, c.skipped = l.testCommands()
	} else if len(c.commands) == 0 {
		c.skipped = "no command is set in " + phase.Commands
	}
	return c
}

// allChecks returns the commands of every check phase, in order.
func (l *batchRun) allChecks() (list []checks) {
	for _, phase := range l.p.opt.Flow.Checks() {
		list = append(list, l.checksOf(phase))
	}
	return list
}

// testCommands returns the commands that test the batch, or the reason why there are no commands.
func (l *batchRun) testCommands() (commands []string, skipped string) {
	if len(l.batch.Tests) > 0 {
		return slices.Clone(l.batch.Tests), ""
	}
	if l.p.opt.Checks.Test == "" {
		return nil, "neither the plan nor run.test_command names a test command"
	}
	path := l.p.testOf(l.unit.Name)
	if strings.Contains(l.p.opt.Checks.Test, "{path}") && !l.inWorkspace(path) {
		if l.p.opt.Checks.Suite != "" {
			return []string{l.p.opt.Checks.Suite}, ""
		}
		return nil, "there is no test file " + path + " and no suite_command"
	}
	return []string{strings.NewReplacer("{path}", shellword.Quote(path), "{controller}", shellword.Quote(l.unit.Name)).Replace(l.p.opt.Checks.Test)}, ""
}

func (l *batchRun) inWorkspace(path string) bool {
	if path == "" {
		return false
	}
	f, err := l.w.Open(path)
	if err != nil {
		return false
	}
	f.Close() // nothing was written
	return true
}

// check runs the commands of a phase. While they fail, an agent fixes the files, up to the
// limit of fixes. The locks stay held.
func (l *batchRun) check(ctx context.Context, phase flow.Phase) error {
	c := l.checksOf(phase)
	at, err := l.resume(ctx, phase.Name)
	if err != nil {
		return err
	}
	q := l.ask(c.Name, "")
	at.Done.Skipped = c.skipped
	if err := l.answerReview(ctx, c, at); err != nil {
		return err
	}
	for len(c.commands) > 0 {
		failed, err := l.runAll(ctx, c, at, func() error { return l.p.begin(q, "") })
		if err != nil {
			return err
		}
		if failed == nil {
			break
		}
		l.p.news(NewsRed, q, fmt.Sprintf("%s: exit status %d: %s", failed.Command, failed.Exit, failed.Last))
		if err := l.warnHidden(q, failed); err != nil {
			return err
		}
		if err := l.compare(ctx, c, failed); err != nil {
			return err
		}
		if at.Done.Fixes >= c.max {
			return errors.Join(fmt.Errorf("%s: %q failed with exit status %d after %d fixes: %s; its output: %s", c.Name, failed.Command, failed.Exit, at.Done.Fixes, failed.Last, failed.Output),
				l.giveUp(ctx, at))
		}
		if err := l.fix(ctx, c, at, failed); err != nil {
			return err
		}
	}
	l.p.passes(l)
	at.Done.End()
	at.Done.Files = l.files
	at.Done.Again = append(at.Done.Again, l.rechecks...)
	if at.Done.Runs == nil {
		at.Done.Runs = []flow.CheckRun{}
	}
	if at.Done.Gaps == nil {
		at.Done.Gaps = []flow.Gap{}
	}
	if err := l.p.opt.Progress.PutCheck(ctx, l.unit.Name, l.batch.ID, phase.Name, at.Done, at.Calls); err != nil {
		return err
	}
	switch {
	case at.Done.State == flow.CheckAsBefore:
		l.p.news(NewsAsBefore, q, at.Done.AsBefore)
	case at.Done.Skipped == "":
		l.p.news(NewsDone, q, "")
	case c.Commands == "":
		l.p.news(NewsSkipped, q, "nothing was tested: "+at.Done.Skipped)
	default:
		l.p.news(NewsSkipped, q, at.Done.Skipped)
	}
	return l.forget(ctx)
}

// giveUp stores the state of the phase. It adds the gaps of the phase to the last document, where
// people see them.
func (l *batchRun) giveUp(ctx context.Context, at *checkState) error {
	if err := l.p.opt.Progress.AddGaps(ctx, l.unit.Name, l.batch.ID, at.Done.Gaps); err != nil {
		return err
	}
	at.Spent, at.Done.Files, at.Done.Gaps = true, l.files, nil
	return l.save(ctx, at)
}

// resume reads the state of an interrupted phase and resets the workspace to it.
func (l *batchRun) resume(ctx context.Context, phase string) (*checkState, error) {
	at := &checkState{Phase: phase, From: l.applied()}
	if before := l.batch.Check(phase); before != nil { // the batch is checked again
		at.Done.Asked, at.Done.Summary = before.Asked, before.Summary
	}
	doc, err := readProgress(ctx, l.folder)
	if err != nil {
		return nil, err
	}
	if doc == nil || doc.Phase != phase || doc.From != at.From {
		return at, nil
	}
	at = doc
	if at.Spent {
		at.Spent, at.Done.Fixes = false, 0
	}
	if sumOf(at.Done.Files) == sumOf(l.files) {
		return at, nil
	}
	l.files = at.Done.Files
	return at, l.reset(ctx)
}

// applied returns the hash of the files that the first agent made.
func (l *batchRun) applied() string {
	if l.batch.Applied == nil {
		return ""
	}
	return fmt.Sprintf("%x", sumOf(l.batch.Applied.Files))
}

// isStored reports whether changes are exactly the stored files of the batch.
func (l *batchRun) isStored(changes []workspace.Change) (bool, error) {
	if len(changes) != len(l.files) {
		return false, nil
	}
	for _, c := range changes {
		if same, err := l.isStoredAs(c); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// isStoredAs reports whether a change equals a stored file of the batch.
func (l *batchRun) isStoredAs(c workspace.Change) (bool, error) {
	at := slices.IndexFunc(l.files, func(f flow.File) bool { return f.Path == c.Path })
	if at < 0 {
		return false, nil
	}
	stored := l.files[at].New
	if c.Now == nil || !stored.Exists() {
		return c.Now == nil && !stored.Exists(), nil
	}
	if !c.Now.Mode.IsRegular() || c.Now.Mode.Perm() != stored.Mode || l.p.isTooLarge(c) {
		return false, nil
	}
	sum, err := sumOfFile(l.w, c.Path)
	return sum == stored.Sum, err
}

// fix calls an agent to fix a failed command.
func (l *batchRun) fix(ctx context.Context, c checks, at *checkState, failed *flow.CheckRun) error {
	said, err := l.p.endOf(failed.Output, maxShown)
	if err != nil {
		return err
	}
	said = fromWorkspace(said, l.w)
	at.Done.Fixes++
	q := l.ask(c.Prompt, c.Answer)
	q.purpose += fmt.Sprintf("-%d-%x", at.Done.Fixes, sumOf(l.files))[:12]
	return l.change(ctx, q, c.FixQueue, at, flow.Ask{
		Failure: fmt.Sprintf("$ %s\nexit status %d\n\n%s", failed.Command, failed.Exit, said), Attempt: at.Done.Fixes, Max: c.max,
	}, fmt.Sprintf("fix %d of %d", at.Done.Fixes, c.max))
}

// change calls an agent that changes the files of the batch, and stores the result.
func (l *batchRun) change(ctx context.Context, q question, phase string, at *checkState, ask flow.Ask, told string) error {
	a, w, err := l.p.takeOver(ctx, q)
	if err != nil {
		return err
	}
	if w == nil {
		a = nil // the changes are lost with the workspace
	} else {
		old := l.w
		l.w = w
		if err := old.Close(ctx, false); err != nil {
			return err
		}
	}
	if a == nil {
		if a, err = l.callAgent(ctx, q, phase, ask, told); err != nil {
			return err
		}
	}
	gaps, err := l.collect(ctx, q)
	if err != nil {
		return err
	}
	said, err := answer[struct{ Summary string }](a.Result)
	if err != nil {
		return err
	}
	at.Done.Files, at.Done.Summary = l.files, said.Summary
	at.Done.Gaps = append(at.Done.Gaps, gaps...)
	at.Calls = append(at.Calls, a.call)
	if err := l.save(ctx, at); err != nil {
		return err
	}
	if err := l.p.used(a); err != nil {
		return err
	}
	if l.p.opt.Land == "after_apply" {
		return l.landNow(ctx)
	}
	return nil
}

// callAgent calls an agent about the changes of the batch. It waits for its slot in the rank of a phase.
func (l *batchRun) callAgent(ctx context.Context, q question, phase string, ask flow.Ask, told string) (_ *asked, err error) {
	q.queue = phase
	if ask.Diff, err = diffOf(l.files, l.folder); err != nil {
		return nil, err
	}
	if q.prompt, err = l.prompt(ctx, q.phase, ask); err != nil {
		return nil, err
	}
	return l.p.call(ctx, l.t, q, l.w, told)
}

// maxShown bounds how much of an output an agent sees, and maxCompared how much is searched for the
// names of failed tests.
const (
	maxShown    = 24 << 10
	maxCompared = 4 << 20
)

// runAll runs the commands in order and returns the first failed run, or nil if none failed other
// than before the run.
// Each has a slot only while it runs. The function begin is called when the first has it.
func (l *batchRun) runAll(ctx context.Context, c checks, at *checkState, begin func() error) (*flow.CheckRun, error) {
	at.Done.AsBefore = ""
	begin = sync.OnceValue(begin)
	for _, command := range c.commands {
		run, err := l.runOne(ctx, c, at.Done.Fixes, command, begin)
		if err != nil {
			return nil, err
		}
		at.Done.Runs = append(at.Done.Runs, run)
		switch {
		case run.AsBefore:
			at.Done.AsBefore = l.failure.String()
		case run.Exit != 0:
			return &run, nil
		}
	}
	return nil, nil
}

// takeTestSlot waits for a slot for one command of a phase, and for its number. The function done
// returns both.
func (l *batchRun) takeTestSlot(ctx context.Context, phase string, begin func() error) (done func() error, err error) {
	if err := l.t.Phase(ctx, phase, sched.PoolTest); err != nil {
		return nil, err
	}
	if err := begin(); err != nil {
		return nil, err
	}
	unlock, err := l.p.lockSlot(ctx, l.t.Slot())
	return func() error { return errors.Join(unlock(), l.t.ReturnSlots(context.WithoutCancel(ctx))) }, err
}

// runOne runs one command in the workspace and undoes its changes, because only an agent's
// changes land. If the command changes a file of the batch, it fails, because it tested other
// files than would land.
func (l *batchRun) runOne(ctx context.Context, c checks, attempt int, command string, begin func() error) (flow.CheckRun, error) {
	tr, err := l.p.ledger.begin(l.ask(c.Name, "").purpose, "", l.t.ID(), time.Time{})
	if err != nil {
		return flow.CheckRun{}, err
	}
	out, err := os.OpenFile(tr.files().Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return flow.CheckRun{}, err
	}
	kept, err := filepath.Rel(l.p.opt.Root.Dir(), tr.files().Output)
	if err != nil {
		return flow.CheckRun{}, err
	}
	run := flow.CheckRun{Command: command, Attempt: attempt, Output: filepath.ToSlash(kept)}
	ran, err := l.executeSomewhere(ctx, c.Name, command, out, begin)
	run.Exit, run.Took = ran.exit, ran.took
	if ran.tooLong {
		_, err = fmt.Fprintf(out, "\nstopped after %s, the limit of run.check_timeout\n", l.p.opt.Limits.CheckTimeout)
	}
	if err == nil {
		err = tr.writeCheck(checkRecord{Took: ran.took})
	}
	var changes []workspace.Change
	if err == nil {
		if changes, err = l.w.Survey(ctx, l.paths()); err == nil {
			err = l.notice(ctx, c, &run, changes, out)
		}
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return run, err
	}
	said, err := l.p.endOf(run.Output, 4<<10)
	said = strings.TrimSpace(said)
	run.Last = said[strings.LastIndexByte(said, '\n')+1:]
	if run.Exit != 0 && err == nil {
		if said, err = l.p.endOf(run.Output, maxCompared); err == nil {
			l.failure = failure.Of(command, run.Exit, ran.tooLong, fromWorkspace(said, l.w), l.w.Dir(), l.w.Home())
			run.AsBefore = ran.exit != 0 && l.isAsBefore(l.failure)
		}
	}
	return run, errors.Join(err, l.undo(ctx, changes))
}
