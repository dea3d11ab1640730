package flows

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/cli/top"
	"lockkeeper/sched"
)

// runBoard shows the progress of a run: a line, or with --json an object, for each piece of
// news. An attended terminal shows the screen of package top instead, and afterwards the news
// that matter later.
type runBoard struct {
	r *flowRun

	mu       sync.Mutex
	began    time.Time
	agents   map[string]bool // running agents: unit, or unit/batch, with the phase
	paused   bool            // nothing new starts
	finished []string        // agents that finished after the run was paused
	screen   *top.Screen     // nil: lines
	ended    bool            // end was called
	kept     []string        // lines that the terminal shows after the screen
	dropped  int             // how many earlier ones are not kept

	watch sync.WaitGroup // waits until the screen is closed
}

// linesKept is how many lines of news the terminal shows after the screen.
const linesKept = 200

func newRunBoard(r *flowRun) *runBoard {
	return &runBoard{r: r, began: r.Now(), agents: map[string]bool{}}
}

// begin opens the screen, if the terminal is attended and --plain is not given. When the person
// closes it, news are lines again, and left is called.
func (b *runBoard) begin(ctx context.Context, conducts bool, left func()) {
	r := b.r
	if _, inside := r.Agent(); r.JSON || r.o.plain || inside || !top.Fits(r.IO) {
		return
	}
	s, err := top.Open(ctx, top.Options{IO: r.IO, Project: r.a, By: r.Person(), Refuse: r.NoAgent, Conducts: conducts})
	if err != nil {
		r.Note("cannot show the screen: %s", term.Clean(err.Error()))
		return
	}
	b.mu.Lock()
	b.screen = s
	b.mu.Unlock()
	b.watch.Go(func() {
		<-s.Closed()
		b.close()
		if !b.hasEnded() {
			left()
		}
	})
}

// end removes the screen; the lines that matter and all later ones stay.
func (b *runBoard) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.close()
	b.watch.Wait()
}

func (b *runBoard) hasEnded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// close removes the screen. News that come meanwhile are kept.
func (b *runBoard) close() {
	b.mu.Lock()
	s := b.screen
	b.mu.Unlock()
	if s == nil {
		return
	}
	err := s.Close() // without the mutex, because a question can hold the screen
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.r.Note("%s", term.Clean(err.Error()))
	}
	b.screen = nil
	b.printKept()
}

// printKept prints the lines that matter. The caller holds the mutex.
func (b *runBoard) printKept() {
	if b.dropped > 0 {
		fmt.Fprintf(b.r.Out, "%d earlier lines: lockkeeper audit\n", b.dropped)
	}
	for _, line := range b.kept {
		fmt.Fprintln(b.r.Out, line)
	}
	b.kept, b.dropped = nil, 0
}

// asking runs a function that asks the person in lines, without the screen.
func (b *runBoard) asking(ask func()) {
	b.mu.Lock()
	s := b.screen
	b.mu.Unlock()
	if s == nil {
		ask()
		return
	}
	err := s.Ask(func() {
		b.mu.Lock()
		b.printKept()
		b.mu.Unlock()
		ask()
	})
	if err != nil {
		b.r.Note("cannot show the screen: %s", term.Clean(err.Error()))
	}
}

func (b *runBoard) hear(n run.News) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(n)
	if n.Phase == string(flow.Discovering) && !b.r.JSON {
		return // the introduction shows this news
	}
	line := newsLine(n)
	switch {
	case b.r.JSON:
		b.r.PrintLine(n) // the output remembers a failed write
	case b.screen == nil:
		fmt.Fprintln(b.r.Out, line)
	default:
		b.screen.Tell(line)
		if matters(n.Kind) {
			b.kept = append(b.kept, line)
			if over := len(b.kept) - linesKept; over > 0 {
				b.kept, b.dropped = b.kept[over:], b.dropped+over
			}
		}
	}
}

// note tracks the running agents. The caller holds the mutex.
func (b *runBoard) note(n run.News) {
	who := workName(n.Unit, n.Batch)
	if n.Phase != "" {
		who += " " + n.Phase
	}
	switch {
	case n.Kind == run.NewsPaused && n.Unit == "":
		b.paused = true
	case n.Kind == run.NewsResumed && n.Unit == "":
		b.paused, b.finished = false, nil
	case n.Unit == "":
	case n.Kind == run.NewsStarted:
		b.agents[who] = true
	case n.Kind == run.NewsRed:
		delete(b.agents, who)
	case n.Kind == run.NewsDone, n.Kind == run.NewsSkipped, n.Kind == run.NewsAsBefore:
		if delete(b.agents, who); b.paused {
			b.finished = append(b.finished, who)
		}
	case n.Kind == run.NewsFailed, n.Kind == run.NewsLanded, n.Kind == run.NewsNoChange:
		maps.DeleteFunc(b.agents, func(name string, _ bool) bool {
			return strings.HasPrefix(name, workName(n.Unit, n.Batch)+" ")
		})
	}
}

func (b *runBoard) working() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.agents))
}

// matters reports whether a line of news stays on the terminal.
func matters(kind run.NewsKind) bool {
	switch kind {
	case run.NewsStarted, run.NewsDone, run.NewsSkipped, run.NewsResumed:
		return false
	}
	return true
}

func workName(unit, batch string) string {
	if batch == "" {
		return unit
	}
	return unit + "/" + batch
}

func newsLine(n run.News) string {
	words := []string{n.At.Local().Format("15:04:05")}
	if name := workName(n.Unit, n.Batch); name != "" {
		words = append(words, term.Clean(name))
	}
	if n.Phase != "" && n.Kind != run.NewsLanded && n.Kind != run.NewsNoChange && n.Kind != run.NewsUndone {
		words = append(words, term.Clean(n.Phase))
	}
	what := map[run.NewsKind]string{run.NewsRun: "", run.NewsAgain: "", run.NewsPerson: "needs a person",
		run.NewsBaseline: "", run.NewsAsBefore: "fails as before the run", run.NewsRed: "did not pass", run.NewsUndone: "undone", run.NewsNoChange: "no change"}
	word, ok := what[n.Kind]
	if !ok {
		word = string(n.Kind)
	}
	text := errorLine(lockkeeper.LocalTimes(n.Text))
	switch {
	case word == "":
		words = append(words, text)
	case text == "":
		words = append(words, word)
	default:
		words = append(words, word+": "+text)
	}
	return strings.Join(words, " ")
}

func (r *flowRun) limits() map[string]int {
	c := r.a.Config
	limits := map[string]int{sched.PoolAgent: c.MaxClaudeConcurrency, sched.PoolTest: c.MaxTestConcurrency, sched.PoolAPI: c.MaxAPIConcurrency}
	if r.o.Slots > 0 {
		limits[sched.PoolAgent] = r.o.Slots
	}
	return limits
}

// budget returns the dollars that the run may spend; 0: no limit.
func (r *flowRun) budget() float64 {
	return cmp.Or(float64(r.o.USD), float64(r.a.Config.Run.BudgetUSD))
}
