package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"lockkeeper"
	"lockkeeper/internal/dossier"
)

func (d *decider) walkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "walk",
		Short: "Go through all that waits, with single keys",
		Long: `Go through all that waits, one after the other, and answer with single keys. What
can be said is shown each time; s skips, v shows all, u takes the last answer back,
? explains and q ends. Every answer counts at once.`,
		Example: `  lockkeeper decide walk`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.json {
				return usage(cmd, "is for people at a terminal; leave --json out")
			}
			return d.deciding(cmd, func(ctx context.Context) error {
				if !isTerminal(d.In) || !isTerminal(d.Err) {
					return &lockkeeper.RefusedError{Act: "decide walk", Reason: "it needs keys and this is not a terminal", Next: "lockkeeper decide, or lockkeeper decide edit"}
				}
				ctx, stop := interruptible(ctx)
				defer stop()
				err := d.walk(ctx)
				var by *interruptedError
				if errors.As(context.Cause(ctx), &by) {
					fmt.Fprintln(d.Err, "\nended; all answers so far count")
					return killedBy(by.signal, nil)
				}
				return err
			})
		},
	}
}

// trip is a walk under way.
type trip struct {
	*decider
	skipped []dossier.Ref
	given   [][]dossier.Ref // by each answer, the last at the end
}

// Keys that are no answers.
const (
	keySkip, keyShow, keyUndo, keyHelp, keyQuit = 's', 'v', 'u', '?', 'q'
	ctrlC, ctrlD                                = 3, 4
)

func (d *decider) walk(ctx context.Context) error {
	t := &trip{decider: d}
	for {
		queue, err := d.book.Waiting(ctx, d.units)
		if err != nil {
			return err
		}
		queue = slices.DeleteFunc(queue, func(g dossier.Gate) bool { return slices.Contains(t.skipped, g.Ref) })
		if len(queue) == 0 {
			return t.end(ctx, "nothing else waits")
		}
		fmt.Fprintf(d.Err, "\n%s\n", d.painter(d.Err)(dim, fmt.Sprintf("%d to go", len(queue))))
		t.present(queue[0])
		more, err := t.stop(ctx, queue[0])
		if err != nil {
			return err
		}
		if !more {
			return t.end(ctx, "")
		}
	}
}

// present shows a gate with what can be said to it.
func (t *trip) present(g dossier.Gate) {
	t.printSheet(t.Err, &sheet{Ref: g.Ref, Facts: g.Facts, Same: g.Same})
}

// stop waits for keys until the gate is answered or left. It says whether the walk goes on.
func (t *trip) stop(ctx context.Context, g dossier.Gate) (more bool, err error) {
	for {
		fmt.Fprintf(t.Err, "%s ", t.painter(t.Err)(bold, t.offer(g)+"?"))
		key, err := t.key(ctx)
		if err != nil {
			return false, err
		}
		for _, a := range answers() {
			if a.kind == g.Ref.Kind && a.key == key {
				fmt.Fprintln(t.Err, a.word)
				answered, err := t.answered(ctx, a, g.Ref)
				if err != nil || answered {
					return true, err
				}
				key = 0 // it is asked again
			}
		}
		switch key {
		case 0:
		case keySkip:
			fmt.Fprintln(t.Err, "skip")
			t.skipped = append(t.skipped, g.Ref)
			return true, nil
		case keyUndo:
			fmt.Fprintln(t.Err, "undo")
			return true, t.undo(ctx)
		case keyShow:
			fmt.Fprintln(t.Err, "show")
			s, err := t.sheet(ctx, g.Ref)
			if err != nil {
				return false, err
			}
			t.printSheet(t.Err, s)
		case keyHelp:
			t.help(g)
		case keyQuit, ctrlC, ctrlD:
			fmt.Fprintln(t.Err, "quit")
			return false, nil
		default:
			t.help(g)
		}
	}
}

// offer lists the words that can be said to a gate, each with its key.
func (t *trip) offer(g dossier.Gate) string {
	var list []string
	for _, a := range answers() {
		if a.kind == g.Ref.Kind && a.key != 0 {
			list = append(list, string(a.key)+" "+a.word)
		}
	}
	return strings.Join(append(list, "s skip", "v show", "u undo", "q quit"), ", ")
}

func (t *trip) help(g dossier.Gate) {
	fmt.Fprintln(t.Err)
	for _, a := range answers() {
		if a.kind == g.Ref.Kind && a.key != 0 {
			fmt.Fprintf(t.Err, "  %c  %s: %s\n", a.key, a.word, a.means)
		}
	}
	fmt.Fprint(t.Err, "  s  skip: leave it for now\n  v  show: all that is known, with the diff\n  u  undo: take the last answer back\n  q  quit: all answers so far count\n")
}

// answered gives an answer. One that is refused is told, and another can be given.
func (t *trip) answered(ctx context.Context, a answer, ref dossier.Ref) (bool, error) {
	var s saying
	if a.asks != "" {
		fmt.Fprintf(t.Err, "Say %s (nothing: leave it): ", a.asks)
		line, err := t.line(ctx)
		if err != nil || strings.TrimSpace(line) == "" {
			return false, err
		}
		s.notes = []string{strings.TrimSpace(line)}
	}
	var v verdict
	a.give(t.decider, ctx, []dossier.Ref{ref}, s, &v)
	return t.settle(ctx, v)
}

// settle tells what came of an answer, and remembers it.
func (t *trip) settle(ctx context.Context, v verdict) (bool, error) {
	for _, err := range v.errs {
		t.say(err.Error())
	}
	if len(v.Done) == 0 {
		return false, nil
	}
	var refs []dossier.Ref
	for _, one := range v.Done {
		fmt.Fprintf(t.Err, "%s %s\n", clean(one.Ref.String()), clean(one.What))
		refs = append(refs, one.Ref)
	}
	t.given = append(t.given, refs)
	return true, t.tell(ctx, v.Done)
}

// undo takes the last answer back.
func (t *trip) undo(ctx context.Context) error {
	if len(t.given) == 0 {
		fmt.Fprintln(t.Err, "there is nothing to take back in this walk")
		return nil
	}
	last := t.given[len(t.given)-1]
	t.given = t.given[:len(t.given)-1]
	var v verdict
	for _, r := range last {
		what, err := t.takeBack(ctx, r)
		v.take(t.program, err, r, what)
	}
	_, err := t.settle(ctx, v)
	if err == nil && len(v.Done) > 0 {
		t.given = t.given[:len(t.given)-1] // it was no answer
	}
	return err
}

// end sums up.
func (t *trip) end(ctx context.Context, why string) error {
	if why != "" {
		fmt.Fprintln(t.Err, why)
	}
	answered, skipped := 0, len(t.skipped)
	for _, refs := range t.given {
		answered += len(refs)
	}
	fmt.Fprintf(t.Out, "%d answered, %d skipped\n", answered, skipped)
	var v verdict
	if err := t.lookAfter(ctx, &v); err != nil {
		return err
	}
	t.advise(v.next())
	return nil
}

// key waits for one key. The terminal is as it was when it returns.
func (t *trip) key(ctx context.Context) (key byte, err error) {
	terminal := int(t.In.Fd())
	state, err := term.MakeRaw(terminal)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, term.Restore(terminal, state)) }()
	if err := t.typing(ctx); err != nil {
		return 0, err
	}
	var one [1]byte
	n, err := unix.Read(terminal, one[:])
	if n == 0 && err == nil { // the terminal is gone
		return ctrlD, nil
	}
	return one[0], err
}

// line waits for a line.
func (t *trip) line(ctx context.Context) (string, error) {
	if err := t.typing(ctx); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(t.In).ReadString('\n')
	if err == io.EOF {
		return line, nil
	}
	return line, err
}

// typing waits until something was typed, or the context ends.
func (t *trip) typing(ctx context.Context) (err error) {
	ended, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ended.Close(), end.Close()) }()
	defer context.AfterFunc(ctx, func() { _, _ = end.Write([]byte{0}) })() // that it is closed means that nobody waits
	list := []unix.PollFd{{Fd: int32(t.In.Fd()), Events: unix.POLLIN}, {Fd: int32(ended.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(list, -1)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}
