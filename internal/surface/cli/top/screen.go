package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/internal/surface/view"
)

// Options configures a Screen.
type Options struct {
	IO      *term.IO // In and Out are terminals, as Fits demands
	Project *project.Project
	By      lockkeeper.Actor
	// Refuse returns why the caller may not act, or nil. Optional.
	Refuse func(act string) error
	// Page is the page that is shown first: a key of the menu. Default n, for Now.
	Page string
	// Interrupt is called on Ctrl-C. Default: the process sends itself the signal, as a terminal does.
	Interrupt func()
	// Conducts means that this process conducts the run, which continues when the screen closes.
	Conducts bool
}

// A Screen is the full-screen view of one codebase. Its methods can be called by several goroutines.
type Screen struct {
	opt     Options
	program *tea.Program
	reader  *reader
	stop    context.CancelFunc
	events  *feed.Feed
	work    sync.WaitGroup // the reader and acts
	ended   chan struct{}  // closed when the program has ended
	err     error          // valid after ended

	mu     sync.Mutex // orders Ask and Close
	closed bool
}

// Fits reports whether a screen can be shown: standard input and output are a terminal that obeys
// escape sequences, and the process is not in the background, where reading keys would stop it.
func Fits(io *term.IO) bool {
	if !term.IsTerminal(io.In) || !io.HandlesEscapes(io.Out) {
		return false
	}
	front, err := unix.IoctlGetInt(int(io.In.Fd()), unix.TIOCGPGRP)
	return err != nil || front == unix.Getpgrp() // an error: this terminal does not control the process
}

// fps limits how often the screen is drawn. It also bounds the delay of a key.
const fps = 20

// Open shows a screen until Close.
func Open(ctx context.Context, o Options) (*Screen, error) {
	if o.Interrupt == nil {
		o.Interrupt = func() {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(os.Interrupt) // this process exists
			}
		}
	}
	events, err := feed.Open(ctx, o.Project.Store, feed.Options{})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Screen{opt: o, events: events, stop: stop, ended: make(chan struct{})}
	s.reader = newReader(view.New(o.Project), o.IO.Now, func(f facts) { s.program.Send(f) })
	m := newModel(s, o)
	options := []tea.ProgramOption{tea.WithInput(o.IO.In), tea.WithOutput(o.IO.Out), tea.WithEnvironment(o.IO.Env), tea.WithoutSignalHandler(), tea.WithFPS(fps)}
	if never, _ := o.IO.Lookup("NO_COLOR"); o.IO.Plain || never != "" {
		options = append(options, tea.WithColorProfile(colorprofile.NoTTY)) // text alone
	}
	s.program = tea.NewProgram(m, options...)
	go func() {
		defer close(s.ended)
		_, s.err = s.program.Run()
	}()
	s.work.Go(func() { s.reader.listen(ctx, events) })
	s.work.Go(func() { s.reader.loop(ctx) })
	return s, nil
}

// Show shows a screen until the person closes it, or ctx ends.
func Show(ctx context.Context, o Options) error {
	s, err := Open(ctx, o)
	if err != nil {
		return err
	}
	select {
	case <-s.Closed():
	case <-ctx.Done():
	}
	return s.Close()
}

// Closed is closed when the person has closed the screen, or it failed. Close is still
// necessary.
func (s *Screen) Closed() <-chan struct{} { return s.ended }

// Close removes the screen and restores the terminal. It waits for acts in progress.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.program.Quit()
	<-s.ended
	s.stop()
	s.work.Wait()
	err := s.events.Close()
	if s.err != nil {
		err = errors.Join(fmt.Errorf("the screen: %w", s.err), err)
	}
	return err
}

// Tell shows a line of news.
func (s *Screen) Tell(text string) { s.program.Send(told(text)) }

// Ask gives the terminal back while ask runs, for a question in lines.
func (s *Screen) Ask(ask func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		ask()
		return nil
	}
	select {
	case <-s.ended:
		ask()
		return nil
	default:
	}
	if err := s.program.ReleaseTerminal(); err != nil {
		return err
	}
	ask()
	return s.program.RestoreTerminal()
}

// The functions below are what a model can do.

func (s *Screen) want(w wants, now bool) { s.reader.ask(w, now) }

func (s *Screen) interrupt() { s.opt.Interrupt() }

// do carries out an act, and then shows what it says. The screen takes keys meanwhile.
func (s *Screen) do(act string, do func(context.Context) (string, error)) {
	if s.opt.Refuse != nil {
		if err := s.opt.Refuse(act); err != nil {
			s.work.Go(func() { s.program.Send(answered{err: err}) })
			return
		}
	}
	s.work.Go(func() {
		said, err := do(context.Background()) // an act that began is not broken off
		s.program.Send(answered{said, err})
		s.reader.again()
	})
}

func (s *Screen) decider(ctx context.Context, flow string) (*acts.Decider, error) {
	return acts.Open(ctx, s.opt.Project, flow, s.opt.By)
}
