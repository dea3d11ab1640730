package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/feed"
)

// Program is one call of the program: its IO and the global flags.
type Program struct {
	*term.IO
	Out            *term.Output // hides IO.Out
	Args           []string
	WorkDir, Store string
	JSON           bool
	Quiet          bool // only answers and errors, without notes and next steps

	Sessions *session.Registry // sessions of the open project; nil: none is open
	reasons  map[string]string // reasons of the grants that block this call, by id
}

// OnProject returns the RunE of a command that works on the project. The time of its flag --wait, if it has one, is also
// that for a store that cannot be reached.
func (p *Program) OnProject(run func(cmd *cobra.Command, a *project.Project, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s := p.Settings()
		if f := cmd.Flags().Lookup("wait"); f != nil {
			if wait, ok := f.Value.(*term.Duration); ok {
				s.Wait = time.Duration(*wait)
			}
		}
		return p.WithSettings(cmd.Context(), s, func(a *project.Project) error { return run(cmd, a, args) })
	}
}

// OnQueue returns the RunE of a command that works on the queue of the project.
func (p *Program) OnQueue(run func(cmd *cobra.Command, a *project.Project, q *job.Queue, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return p.WithQueue(cmd.Context(), p.Settings(), func(a *project.Project, q *job.Queue) error { return run(cmd, a, q, args) })
	}
}

// WithQueue opens the project and its queue, and runs a command on them.
func (p *Program) WithQueue(ctx context.Context, s project.Settings, run func(*project.Project, *job.Queue) error) error {
	return p.WithSettings(ctx, s, func(a *project.Project) error {
		q, err := job.Open(a)
		if err != nil {
			return err
		}
		return run(a, q)
	})
}

func (p *Program) Base() string {
	if filepath.IsAbs(p.WorkDir) {
		return p.WorkDir
	}
	return filepath.Join(p.Dir, p.WorkDir)
}

// Path returns a path as typed, relative to Base.
func (p *Program) Path(typed string) string {
	if filepath.IsAbs(typed) {
		return typed
	}
	return filepath.Join(p.Base(), typed)
}

// Settings returns how to open the project of this call.
func (p *Program) Settings() project.Settings {
	return project.Settings{Dir: p.Base(), Store: p.Store, Env: p.Lookup, Caller: p.caller}
}

// With opens the project and runs a command on it.
func (p *Program) With(ctx context.Context, run func(*project.Project) error) error {
	return p.WithSettings(ctx, p.Settings(), run)
}

func (p *Program) WithSettings(ctx context.Context, s project.Settings, run func(*project.Project) error) (err error) {
	a, err := project.Open(ctx, s)
	if err != nil {
		return err
	}
	p.NoteRecovery(a.Recovery)
	p.Sessions = session.Open(a)
	defer func() {
		p.Sessions = nil
		if closing := a.Close(); err == nil {
			err = closing
		}
	}()
	err = run(a)
	if err != nil {
		p.readReasons(ctx, a, err)
	}
	return err
}

// Answer writes the answer of a command: value with --json, otherwise the formatted line.
func (p *Program) Answer(value any, format string, args ...any) error {
	if p.JSON {
		return p.PrintJSON(value)
	}
	_, err := fmt.Fprintf(p.Out, format+"\n", args...)
	return err
}

// Show writes the answer of a command: value with --json, otherwise what show prints.
func (p *Program) Show(value any, show func()) error {
	if p.JSON {
		return p.PrintJSON(value)
	}
	show()
	return nil
}

// PrintLine writes one value as one line of JSON, for commands that write several.
func (p *Program) PrintLine(value any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

// PrintJSON writes one value to standard output.
func (p *Program) PrintJSON(value any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// Exists reports whether a path, as typed, exists.
func (p *Program) Exists(typed string) bool {
	_, err := os.Lstat(filepath.Join(p.Base(), typed))
	return err == nil
}

// NoteRecovery prints what was recovered before the command ran.
func (p *Program) NoteRecovery(r *project.Recovery) {
	if r == nil {
		return
	}
	if done := Recovered(r.Report); len(done) > 0 {
		fmt.Fprintf(p.Err, "note: after a crash: %s\n", strings.Join(done, "; "))
	}
	if r.Err != nil {
		fmt.Fprintf(p.Err, "note: cannot recover after a crash: %s\n", term.Clean(lockkeeper.Message(r.Err)))
		p.Advise("lockkeeper gate recover")
	}
}

func Recovered(r gate.Report) (lines []string) {
	for _, group := range []struct {
		done string
		seqs []uint64
	}{{"completed", r.Finished}, {"rolled back", r.Undone}} {
		if len(group.seqs) > 0 {
			lines = append(lines, group.done+" "+term.Plural(len(group.seqs), "landing", "landings")+" "+strings.Trim(fmt.Sprint(group.seqs), "[]"))
		}
	}
	if r.Cleared > 0 {
		lines = append(lines, "removed "+term.Counted(r.Cleared, "undecided write"))
	}
	return lines
}

// Follow calls the function show after every event, and every WatchEvery without one, until a
// signal ends it.
func Follow(ctx context.Context, open func(context.Context) (*feed.Feed, error), show func(context.Context) error) error {
	ctx, stop := Interruptible(ctx)
	defer stop()
	events, err := open(ctx)
	if err != nil {
		return err
	}
	defer events.Close()
	for seen := events.Last(); ; {
		if err := show(ctx); err != nil {
			return WatchEnd(ctx, err)
		}
		wait, done := context.WithTimeout(ctx, WatchEvery)
		news, err := events.Next(wait, seen)
		done()
		switch {
		case ctx.Err() != nil:
			return WatchEnd(ctx, nil)
		case len(news) > 0:
			seen = news[len(news)-1].Seq
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// WatchEnd returns the error that ends a watch. A signal ends it without a message.
func WatchEnd(ctx context.Context, err error) error {
	if by, ok := errors.AsType[*InterruptedError](context.Cause(ctx)); ok {
		return KilledBy(by.Signal, nil)
	}
	return err
}

// WatchEvery is how often a watcher reads again without an event: durations change, and the
// progress that an item notes is not an event.
const WatchEvery = 2 * time.Second
