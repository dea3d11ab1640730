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
		Long: `Answer open decisions one by one with single keys. Each shows its possible answers; s
skips, v shows everything, u undoes the last answer, ? explains and q quits. Each answer
takes effect at once.`,
		Example: `  lockkeeper decide walk`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.JSON {
				return command.Usage(cmd, "is for people at a terminal; omit --json")
			}
			return d.deciding(cmd, func(ctx context.Context) error {
				if !d.Attended() {
					return &lockkeeper.RefusedError{Act: "decide walk", Reason: "it reads single keys, and this is not a terminal", Next: d.flow.Command("decide") + ", or " + d.flow.Command("decide", "edit")}
				}
				ctx, stop := command.Interruptible(ctx)
				defer stop()
				err := d.walk(ctx)
				if by, ok := errors.AsType[*command.InterruptedError](context.Cause(ctx)); ok {
					fmt.Fprintln(d.Err, "\nended; all answers so far are stored")
					return command.KilledBy(by.Signal, nil)
				}
				return err
			})
		},
	}
}

// trip is a walk in progress.
type trip struct {
	*decider
	skipped []progress.Ref
	given   [][]progress.Ref // the references that each answer decided, oldest answer first
}

// These are the keys that do not answer.
const (
	keySkip, keyShow, keyUndo, keyHelp, keyQuit = 's', 'v', 'u', '?', 'q'
	ctrlC, ctrlD                                = 3, 4
)

func (d *decider) walk(ctx context.Context) error {
	t := &trip{decider: d}
	for {
		queue, err := d.flow.Waiting(ctx)
		if err != nil {
			return err
		}
		queue = slices.DeleteFunc(queue, func(g progress.Decision) bool { return slices.Contains(t.skipped, g.Ref) })
		if len(queue) == 0 {
			return t.end(ctx, "no more decisions")
		}
		fmt.Fprintf(d.Err, "\n%s\n", d.Painter(d.Err)(term.Dim, fmt.Sprintf("%d left", len(queue))))
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

func (t *trip) present(g progress.Decision) {
	t.printFacts(t.Err, &factSheet{Ref: g.Ref, Facts: g.Facts, Same: g.Same})
}

// stop reads keys until the decision is answered or skipped, and reports whether to continue.
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
				key = 0 // asks again
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
			s, err := t.facts(ctx, g.Ref)
			if err != nil {
				return false, err
			}
			t.printFacts(t.Err, s)
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

// offer lists the possible answers to a decision, each with its key.
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
	fmt.Fprint(t.Err, "  s  skip: leave it open for now\n  v  show: everything, with the diff\n  u  undo: undo the last answer\n  q  quit: all answers so far are stored\n")
}

// answered gives an answer to the decision as shown. After a refusal it returns false, so that
// the person can give another.
func (t *trip) answered(ctx context.Context, a acts.Answer, g progress.Decision) (bool, error) {
	s := acts.AnswerInput{Seen: acts.Seen{g.Ref: g.Version}}
	if a.Asks != "" {
		fmt.Fprintf(t.Err, "Type %s (empty: give no answer): ", a.Asks)
		line, err := t.line(ctx)
		if err != nil || strings.TrimSpace(line) == "" {
			return false, err
		}
		s.Notes = []string{strings.TrimSpace(line)}
	}
	v, err := t.flow.Give(ctx, a.Word, []progress.Ref{g.Ref}, s)
	if err != nil {
		return false, err
	}
	refs := t.printOutcome(v)
	if len(refs) > 0 {
		t.given = append(t.given, refs)
	}
	stale := slices.ContainsFunc(v.Refused, func(err error) bool { return errors.As(err, new(*progress.StaleError)) })
	return len(refs) > 0 || stale, nil // the present version is shown next
}

// printOutcome prints the outcome of an act, and returns the decisions that it changed.
func (t *trip) printOutcome(v acts.Verdict) (refs []progress.Ref) {
	for _, err := range v.Refused {
		t.Say(err.Error())
	}
	for _, one := range v.Done {
		fmt.Fprintln(t.Err, sentence(one))
		refs = append(refs, one.Ref)
	}
	return refs
}

func (t *trip) undo(ctx context.Context) error {
	if len(t.given) == 0 {
		fmt.Fprintln(t.Err, "nothing to undo in this walk")
		return nil
	}
	last := t.given[len(t.given)-1]
	t.given = t.given[:len(t.given)-1]
	v, err := t.flow.Withdraw(ctx, last)
	t.printOutcome(v)
	return err
}

func (t *trip) end(ctx context.Context, why string) error {
	if why != "" {
		fmt.Fprintln(t.Err, why)
	}
	answered, skipped := 0, len(t.skipped)
	for _, refs := range t.given {
		answered += len(refs)
	}
	fmt.Fprintf(t.Out, "%d answered, %d skipped\n", answered, skipped)
	v, err := t.flow.State(ctx)
	t.Advise(t.next(v))
	return err
}

// key reads one key, and restores the terminal.
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

// typing waits until a key is typed, or the context ends.
func (t *trip) typing(ctx context.Context) (err error) {
	ended, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ended.Close(), end.Close()) }()
	defer context.AfterFunc(ctx, func() { _, _ = end.Write([]byte{0}) })() // fails only if the wait has ended
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
