package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/internal/surface/view"
)

// demoPolicy accepts items with at least medium impact.
const demoPolicy = "impact>=medium"

func (w *walk) begin(ctx context.Context) error {
	w.chapter("Set up Lockkeeper in a small blog application with tests.",
		fmt.Sprintf("It has %d files in %s.", len(w.before), w.dir))
	return w.show(ctx, w.command(ctx, "init"))
}

// crash kills a run after something has landed and while more is running. The script
// keeps the run in that state, so the kill cannot come too late on a slow machine.
func (w *walk) crash(ctx context.Context) error {
	w.chapter("Agents harden four controllers at once.",
		"Each is analyzed and its changes are planned. Each batch of changes is made in a private",
		"workspace, tested, verified and landed, under locks on the files that it writes. A policy",
		"decides in place of people. The agents follow a script: the dollars that they report are",
		"made up, and nothing is paid.")
	return w.inside(ctx, func(a *project.Project) (err error) {
		q, err := job.Open(a)
		if err != nil {
			return err
		}
		events, err := q.Feed(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, events.Close()) }()
		before := events.Last()
		run, err := w.conduct(ctx, "--auto-decide", demoPolicy)
		if err != nil {
			return err
		}
		ready, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		go func() {
			<-run.ended
			stop(run.failure("it ended before it could be killed"))
		}()
		if err = w.untilMiddle(ready, a, events, before); err != nil && ready.Err() != nil {
			err = context.Cause(ready)
		}
		killed := w.kill(run, err == nil)
		<-run.ended
		return errors.Join(err, killed, w.direct(sample.Script))
	})
}

// untilMiddle waits until the run is in the middle, as middle defines it.
func (w *walk) untilMiddle(ctx context.Context, a *project.Project, events *feed.Feed, after uint64) error {
	m := &middle{held: map[string]bool{}}
	for {
		list, err := events.Next(ctx, after)
		if err != nil {
			return err
		}
		for _, ev := range list {
			after = ev.Seq
			m.see(ev)
		}
		if m.waited && !m.shown {
			m.shown = true
			if err := w.showContention(ctx); err != nil {
				return err
			}
		}
		if !m.reached() {
			continue
		}
		if topic, err := openTopic(ctx, a); err != nil || topic != "" {
			return err
		}
	}
}

func (w *walk) kill(run *conductor, shown bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashed = time.Now()
	err := run.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if shown {
		fmt.Fprintln(w.to, w.paint(term.Bold, fmt.Sprintf("$ kill -9 %d", run.cmd.Process.Pid)))
	}
	return err
}

// showContention shows who holds the contended file and who waits for it.
func (w *walk) showContention(ctx context.Context) error {
	w.tell("   Several agents want the same file. One holds it, and the others wait their turn:")
	return w.show(ctx, w.command(ctx, "why", sample.Contended))
}

// middle recognizes the middle of a run: something has landed, more is running, and the
// wait for the contended file was shown.
type middle struct {
	held   map[string]bool // grants on files of the application
	landed bool
	waited bool // an item waits for the contended file
	shown  bool
}

func (m *middle) see(ev lockkeeper.Event) {
	switch ev.Kind {
	case lockkeeper.EventAcquired:
		for _, l := range ev.Locks {
			if l.Mode == lockkeeper.Write && !strings.HasPrefix(l.Path, ".") {
				m.held[ev.GrantID] = true
			}
		}
	case lockkeeper.EventReleased, lockkeeper.EventRecovered, lockkeeper.EventExpired:
		delete(m.held, ev.GrantID)
	case lockkeeper.EventLanded:
		m.landed = true
	case lockkeeper.EventBlocked:
		for _, c := range ev.Conflicts {
			m.waited = m.waited || c.Path == sample.Contended
		}
	}
}

func (m *middle) reached() bool { return m.landed && m.shown && len(m.held) > 0 }

// remains shows the state after the crash. Its first command recovers a landing that was decided when the run
// died.
func (w *walk) remains(ctx context.Context) error {
	w.chapter("In the middle, the run is killed, as in a crash. It leaves locks of dead processes,",
		"and work that returns to the queue:")
	if err := w.show(ctx, w.command(ctx, "status")); err != nil {
		return err
	}
	w.tell("   Every landing is complete, no partial change is in the tree, and the tests pass:")
	check := exec.CommandContext(ctx, "sh", "-c", sample.Test+" && "+sample.CI)
	check.Dir, check.Env = w.dir, w.env
	return w.show(ctx, check)
}

func (w *walk) answer(ctx context.Context) error {
	w.chapter("One analysis needs research that the policy leaves to people. A person pastes the answer:")
	if err := w.show(ctx, w.command(ctx, "decide")); err != nil {
		return err
	}
	var topic string
	err := w.inside(ctx, func(a *project.Project) (err error) {
		topic, err = openTopic(ctx, a)
		return err
	})
	if err != nil {
		return err
	}
	return w.show(ctx, w.command(ctx, append(append([]string{"decide", "answer"}, strings.Fields(topic)...), filepath.Join("..", researchName))...))
}

// researchName is the file with the answer, next to the application.
const researchName = "research.md"

// openTopic returns an open topic, or "".
func openTopic(ctx context.Context, a *project.Project) (string, error) {
	book, f, docs, err := conduct.OpenDocuments(a, flow.Default().Name)
	if err != nil {
		return "", err
	}
	units, err := conduct.Units(ctx, f, docs)
	if err != nil {
		return "", err
	}
	gates, err := book.Waiting(ctx, units)
	for _, g := range gates {
		if g.Ref.Kind == progress.TopicKind {
			return g.Ref.String(), err
		}
	}
	return "", err
}

func (w *walk) resume(ctx context.Context) error {
	w.chapter("The same command resumes the run. No finished step is repeated.")
	return w.runThrough(ctx, "--auto-decide", demoPolicy)
}

// runThrough waits for a run to succeed. Open decisions about refused writes are expected.
func (w *walk) runThrough(ctx context.Context, args ...string) error {
	run, err := w.through(ctx, args...)
	if err == nil && run.err != nil {
		return run.failure("it failed")
	}
	return err
}

// through waits for the end of a run, with or without an error.
func (w *walk) through(ctx context.Context, args ...string) (*conductor, error) {
	run, err := w.conduct(ctx, args...)
	if err != nil {
		return nil, err
	}
	<-run.ended
	w.running = !run.cmd.ProcessState.Exited()
	return run, context.Cause(ctx)
}

// refused shows the writes of agents without a lock.
func (w *walk) refused(ctx context.Context) error {
	w.chapter("Changes that agents made without a lock did not land, and are kept:")
	return w.show(ctx, w.command(ctx, "rescue", "list"))
}

type result struct {
	*proof
	Files   int             `json:"files_changed"`
	Batches int             `json:"batches"`         // number of queued batches
	USD     float64         `json:"usd,omitempty"`   // cost of claude
	Error   lockkeeper.Code `json:"error,omitempty"` // why the demonstration did not finish
	Message string          `json:"message,omitempty"`
	Seconds float64         `json:"seconds"`
	Dir     string          `json:"dir,omitempty"` // directory of the demonstration, if it is kept
}

// sum shows who ran when, what changed, and whether any write overwrote another.
func (w *walk) sum(ctx context.Context) error {
	var rec *view.Record
	picture := picture{crashed: w.crashed}
	err := w.inside(ctx, func(a *project.Project) (err error) {
		if rec, err = view.ReadRecord(ctx, a); err == nil {
			picture.Timeline, err = view.New(a).Timeline(ctx, view.TimelineQuery{})
		}
		return err
	})
	if err != nil {
		return err
	}
	now, err := photograph(w.dir)
	if err != nil {
		return err
	}
	w.chapter("Who ran when:")
	picture.print(w.to, w.symbols(), w.columns(), w.paint)
	w.tell("   Who waited for whom:")
	picture.printWaits(w.to)
	changed := w.before.diffOf(now)
	w.chapter("What changed, and the report:")
	w.showDiff(changed, w.opt.context)
	if err := w.show(ctx, w.command(ctx, "report", "-o", filepath.Join("..", reportName))); err != nil {
		return err
	}
	return w.conclude(prove(rec, w.before.versions(), now.versions()), len(changed), batchesOf(rec))
}

// reportName is the file of the report, next to the application.
const reportName = "report.md"

// batchesOf counts the batches that were queued.
func batchesOf(rec *view.Record) int {
	batches := map[string]bool{}
	for _, it := range rec.Items {
		if it.Unit == string(flow.BatchUnit) {
			batches[it.Workflow] = true
		}
	}
	return len(batches)
}

func (w *walk) conclude(p *proof, files, batches int) error {
	took := w.Now().Sub(w.began)
	how, wrong := []string{"This is counted from the event log: no two grants ever conflicted, each landed file was",
		"locked for writing by the grant of its landing, each landing found what the one before",
		"had left, and no other file changed."}, w.short
	if len(p.Collisions) > 0 {
		how = p.Collisions
		wrong = lockkeeper.WithNext(fmt.Errorf("%s", term.Counted(len(p.Collisions), "collision")), "lockkeeper demo --keep, then lockkeeper audit in its directory")
	}
	w.tell(p.String(), how...)
	if w.JSON {
		return w.concludeJSON(result{proof: p, Files: files, Batches: batches, Seconds: took.Seconds()}, wrong)
	}
	fmt.Fprintf(w.to, "\nThat took %s", term.Span(took))
	if w.paid != nil {
		fmt.Fprintf(w.to, " and cost $%.2f, in %s of claude", w.paid.USD, term.Counted(w.paid.Calls, "call"))
	}
	if w.opt.keep {
		fmt.Fprintf(w.to, ". Everything is in %s:\n", w.base)
		for _, line := range w.whatIsWhere() {
			fmt.Fprintln(w.to, "  "+line)
		}
		return wrong
	}
	fmt.Fprintln(w.to, ". The directory is removed; --keep keeps it.")
	if wrong == nil {
		w.Advise("lockkeeper init in the root of your codebase, then lockkeeper run --plan FILE with tasks of your own (see lockkeeper run --help)")
	}
	return wrong
}

// concludeJSON prints the result as JSON, also with an error.
func (w *walk) concludeJSON(r result, wrong error) error {
	if w.opt.keep {
		r.Dir = w.dir
	}
	if w.paid != nil {
		r.USD = w.paid.USD
	}
	if wrong == nil {
		return w.PrintJSON(r)
	}
	r.Error, r.Message = lockkeeper.CodeOf(wrong), wrong.Error()
	return errors.Join(w.PrintJSON(r), &command.ExitError{Code: command.ExitCode(wrong)})
}

func (w *walk) whatIsWhere() []string {
	lines := []string{
		"blog/                    the application",
		"blog/.pipeline/          the documents of each phase: analyses, decisions, batches, test results",
		"blog/.lockkeeper/calls/  the prompt and the output of each agent",
		"report.md                what changed, what it cost, what was refused",
		"inspect it with:",
		"  cd " + w.dir,
		"  export XDG_STATE_HOME=" + w.base,
		"  lockkeeper decide; lockkeeper audit; lockkeeper rescue list",
	}
	if w.git {
		lines = append(lines, "  git log --stat")
	}
	return append(lines, "  rm -r "+w.base)
}

// symbols returns the symbols of the picture: blocks on a UTF-8 terminal.
func (w *walk) symbols() symbols {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		value, _ := w.Lookup(name)
		if value == "" {
			continue
		}
		spelled := strings.ToLower(strings.ReplaceAll(value, "-", ""))
		if term.IsTerminal(w.Out) && strings.Contains(spelled, "utf8") {
			return inBlocks
		}
		break
	}
	return inASCII
}

func (w *walk) columns() int {
	if columns := term.Width(w.Out); columns > 0 {
		return columns
	}
	return 100
}
