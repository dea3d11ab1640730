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
	"lockkeeper/sched"
)

// runBoard shows the progress of a run: a line, or with --json an object, for each piece of
// news. A terminal also shows a live display of the run below the news, and keeps only the
// news that matter later.
type runBoard struct {
	r    *flowRun
	live bool
	poke chan struct{}
	quit chan struct{}
	loop sync.WaitGroup

	mu       sync.Mutex
	began    time.Time
	agents   map[string]bool // running agents: unit, or unit/batch, with the phase
	paused   bool            // nothing new starts
	finished []string        // agents that finished after the run was paused
	recent   []string        // the last lines of news
	display  []string
	drawn    int  // lines of the display on the terminal
	held     bool // the terminal shows a question instead of the display
}

// recentShown is how many lines of news the display has.
const recentShown = 4

func newRunBoard(r *flowRun) *runBoard {
	return &runBoard{r: r, live: !r.JSON && r.HandlesEscapes(r.Out), poke: make(chan struct{}, 1), quit: make(chan struct{}), began: r.Now(), agents: map[string]bool{}}
}

// begin updates the display until end.
func (b *runBoard) begin(ctx context.Context, seen *run.Pipeline) {
	if !b.live {
		return
	}
	b.loop.Go(func() {
		wait := time.NewTimer(0)
		defer wait.Stop()
		for {
			select {
			case <-b.quit:
				return
			case <-b.poke:
				b.draw(nil)
				continue
			case <-wait.C:
			}
			started := time.Now()
			if view, err := b.r.view(ctx, seen); err == nil { // the run reports errors of the store
				b.draw(view)
			}
			// Reading takes every document, so leave the machine idle most of the time.
			wait.Reset(max(time.Second, 5*time.Since(started)))
		}
	})
}

// end removes the display; later lines stay.
func (b *runBoard) end() {
	if !b.live {
		return
	}
	close(b.quit)
	b.loop.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.live = false
}

// hold removes the display until the returned function is called.
func (b *runBoard) hold() (show func()) {
	set := func(held bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.live {
			b.erase()
		}
		b.held = held
	}
	set(true)
	return func() { set(false) }
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
	case !b.live:
		fmt.Fprintln(b.r.Out, line)
	case matters(n.Kind):
		b.erase()
		fmt.Fprintln(b.r.Out, line)
		b.show()
	default:
		b.recent = append(b.recent, line)
		b.recent = b.recent[max(0, len(b.recent)-recentShown):]
		b.wake()
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

// Escape sequences that return the cursor to the start of the display.
const (
	upward = "\x1b[%dA"
	toEnd  = "\r\x1b[J" // clears to the end of the screen
)

// erase removes the display from the terminal. The caller holds the mutex.
func (b *runBoard) erase() {
	if b.held {
		return
	}
	if b.drawn > 0 {
		fmt.Fprintf(b.r.Out, upward, b.drawn)
	}
	fmt.Fprint(b.r.Out, toEnd)
	b.drawn = 0
}

// show prints the display. The caller holds the mutex.
func (b *runBoard) show() {
	if b.held {
		return
	}
	columns, rows := term.Window(b.r.Out)
	lines := append(slices.Clone(b.display), b.recent...)
	lines = lines[:min(len(lines), max(1, rows-1))]
	paint := b.r.Painter(b.r.Out)
	for i, line := range lines {
		line = term.Ellipsis(line, max(20, columns-1))
		switch {
		case i == 0:
			line = paint(term.Bold, line)
		case i >= len(b.display):
			line = paint(term.Dim, line)
		}
		fmt.Fprintln(b.r.Out, line)
	}
	b.drawn = len(lines)
}

// draw updates and shows the display; nil: without new data.
func (b *runBoard) draw(view *runView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if view != nil {
		_, rows := term.Window(b.r.Out)
		b.display = view.lines(b.r.Now().Sub(b.began), max(3, rows-1-recentShown))
	}
	b.erase()
	b.show()
}

// wake asks for the display to be shown again.
func (b *runBoard) wake() {
	select {
	case b.poke <- struct{}{}:
	default: // another wake-up is pending already
	}
}

// view reads the data of the display.
func (r *flowRun) view(ctx context.Context, seen *run.Pipeline) (*runView, error) {
	out, err := seen.Outcome(ctx)
	if err != nil {
		return nil, err
	}
	v := &runView{p: r.program, flow: r.flow, out: out, usd: r.budget(), taken: map[string]int{}, limits: r.limits(), idle: map[string]string{}}
	v.addMachines()
	return v, r.addQueue(ctx, v)
}

// addMachines adds the slots of the machines that joined to the limits.
func (v *runView) addMachines() {
	for _, m := range v.out.State.Machines {
		if !m.Conducts && !m.Gone {
			v.limits[sched.PoolAgent] += m.Agents
			v.limits[sched.PoolTest] += m.Tests
		}
	}
}

// addQueue adds the slots and the waiting items of the queue to the data of the display.
func (r *flowRun) addQueue(ctx context.Context, v *runView) error {
	active, err := r.q.Active(ctx)
	if err != nil {
		return err
	}
	for _, it := range active {
		if it.Stage == lockkeeper.StageRunning {
			for _, pool := range it.Pools {
				v.taken[pool]++
			}
		} else if it.Aside() == "" && len(it.Pools) > 0 {
			v.idle[it.ID] = it.Pools[0]
		}
	}
	explained := waitsShown
	if r.flow.OneUnit != "" {
		explained = taskWaitsShown
	}
	v.waits, err = r.q.Blocked(ctx, explained)
	return err
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
