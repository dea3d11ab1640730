package command

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"lockkeeper/internal/surface/cli/term"
)

// WhileTesting calls try, which runs tests and calls began before they start. It shows people at a
// terminal what runs and for how long. A signal cancels the context of try.
func (p *Program) WhileTesting(ctx context.Context, try func(ctx context.Context, began func(commands []string)) error) error {
	ctx, stop := Interruptible(ctx)
	defer stop()
	end := func() {}
	err := try(ctx, func(commands []string) {
		end = p.clock("running the tests on the unchanged tree: " + strings.Join(commands, ", "))
	})
	end()
	return Interrupted(ctx, err)
}

// clock shows a text on a terminal, with the time since the call, until end is called. It writes
// to standard error, and nothing elsewhere than to a terminal.
func (p *Program) clock(text string) (end func()) {
	if p.Quiet || !p.HandlesEscapes(p.Err) {
		return func() {}
	}
	began, done := p.Now(), make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			line := []rune(fmt.Sprintf("%s  %s", term.Span(p.Now().Sub(began)), term.Clean(text)))
			fmt.Fprint(p.Err, clearLine+string(line[:min(len(line), max(0, term.Width(p.Err)-1))]))
			select {
			case <-tick.C:
			case <-done:
				fmt.Fprint(p.Err, clearLine)
				return
			}
		}
	})
	return func() {
		close(done)
		shown.Wait()
	}
}

const clearLine = "\r\x1b[K"
