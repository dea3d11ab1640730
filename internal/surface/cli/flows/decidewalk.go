package flows

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
	xterm "golang.org/x/term"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (d *decider) walkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "walk",
		Short: "Answer open decisions one by one with single keys",
		Long: `Go through all that waits, one after the other, and answer with single keys. What
can be said is shown each time; s skips, v shows all, u takes the last answer back,
? explains and q ends. Every answer counts at once.`,
		Example: `  lockkeeper decide walk`,
		Args:    command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.JSON {
				return command.Usage(cmd, "is for people at a terminal; leave --json out")
			}
			return d.deciding(cmd, func(ctx context.Context) error {
				if !d.Attended() {
					return &lockkeeper.RefusedError{Act: "decide walk", Reason: "it needs keys and this is not a terminal", Next: d.desk.Command("decide") + ", or " + d.desk.Command("decide", "edit")}
				}
				ctx, stop := command.Interruptible(ctx)
				defer stop()
				err := d.walk(ctx)
				var by *command.InterruptedError
				if errors.As(context.Cause(ctx), &by) {
					fmt.Fprintln(d.Err, "\nended; all answers so far count")
					return command.KilledBy(by.Signal, nil)
				}
				return err
			})
		},
	}
}

// trip is a walk under way.
type trip struct {
	*decider
	skipped []progress.Ref
	given   [][]progress.Ref // by each answer, the last at the end
}

// Keys that are no answers.
const (
	keySkip, keyShow, keyUndo, keyHelp, keyQuit = 's', 'v', 'u', '?', 'q'
	ctrlC, ctrlD                                = 3, 4
)

func (d *decider) walk(ctx context.Context) error {
	t := &trip{decider: d}
	for {
		queue, err := d.desk.Waiting(ctx)
		if err != nil {
			return err
		}
		queue = slices.DeleteFunc(queue, func(g progress.Decision) bool { return slices.Contains(t.skipped, g.Ref) })
		if len(queue) == 0 {
			return t.end(ctx, "nothing else waits")
		}
		fmt.Fprintf(d.Err, "\n%s\n", d.Painter(d.Err)(term.Dim, fmt.Sprintf("%d to go", len(queue))))
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
func (t *trip) present(g progress.Decision) {
	t.printSheet(t.Err, &acts.Sheet{Ref: g.Ref, Facts: g.Facts, Same: g.Same})
}

// stop waits for keys until the gate is answered or left. It says whether the walk goes on.
func (t *trip) stop(ctx context.Context, g progress.Decision) (more bool, err error) {
	for {
		fmt.Fprintf(t.Err, "%s ", t.Painter(t.Err)(term.Bold, t.offer(g)+"?"))
		key, err := t.key(ctx)
		if err != nil {
			return false, err
		}
		for _, a := range acts.Answers() {
			if a.Kind == g.Ref.Kind && a.Key == key {
				fmt.Fprintln(t.Err, a.Word)
				answered, err := t.answered(ctx, a, g)
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
			s, err := t.desk.Sheet(ctx, g.Ref)
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
func (t *trip) offer(g progress.Decision) string {
	var list []string
	for _, a := range acts.Answers() {
		if a.Kind == g.Ref.Kind && a.Key != 0 {
			list = append(list, string(a.Key)+" "+a.Word)
		}
	}
	return strings.Join(append(list, "s skip", "v show", "u undo", "q quit"), ", ")
}

func (t *trip) help(g progress.Decision) {
	fmt.Fprintln(t.Err)
	for _, a := range acts.Answers() {
		if a.Kind == g.Ref.Kind && a.Key != 0 {
			fmt.Fprintf(t.Err, "  %c  %s: %s\n", a.Key, a.Word, a.Means)
		}
	}
	fmt.Fprint(t.Err, "  s  skip: leave it for now\n  v  show: all that is known, with the diff\n  u  undo: take the last answer back\n  q  quit: all answers so far count\n")
}

// answered gives an answer to what was shown. One that is refused is told, and another
// can be given.
func (t *trip) answered(ctx context.Context, a acts.Answer, g progress.Decision) (bool, error) {
	s := acts.Saying{Seen: acts.Seen{g.Ref: g.Version}}
	if a.Asks != "" {
		fmt.Fprintf(t.Err, "Say %s (nothing: leave it): ", a.Asks)
		line, err := t.line(ctx)
		if err != nil || strings.TrimSpace(line) == "" {
			return false, err
		}
		s.Notes = []string{strings.TrimSpace(line)}
	}
	v, err := t.desk.Give(ctx, a.Word, []progress.Ref{g.Ref}, s)
	if err != nil {
		return false, err
	}
	refs := t.settle(v)
	if len(refs) > 0 {
		t.given = append(t.given, refs)
	}
	stale := slices.ContainsFunc(v.Refused, func(err error) bool { return errors.As(err, new(*progress.StaleError)) })
	return len(refs) > 0 || stale, nil // what is there now is shown next
}

// settle tells what came of an act, and lists what it was done to.
func (t *trip) settle(v acts.Verdict) (refs []progress.Ref) {
	for _, err := range v.Refused {
		t.Say(err.Error())
	}
	for _, one := range v.Done {
		fmt.Fprintln(t.Err, sentence(one))
		refs = append(refs, one.Ref)
	}
	return refs
}

// undo takes the last answer back.
func (t *trip) undo(ctx context.Context) error {
	if len(t.given) == 0 {
		fmt.Fprintln(t.Err, "there is nothing to take back in this walk")
		return nil
	}
	last := t.given[len(t.given)-1]
	t.given = t.given[:len(t.given)-1]
	v, err := t.desk.TakeBack(ctx, last)
	t.settle(v)
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
	v, err := t.desk.Look(ctx)
	t.Advise(t.next(v))
	return err
}

// key waits for one key. The terminal is as it was when it returns.
func (t *trip) key(ctx context.Context) (key byte, err error) {
	terminal := int(t.In.Fd())
	state, err := xterm.MakeRaw(terminal)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, xterm.Restore(terminal, state)) }()
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
