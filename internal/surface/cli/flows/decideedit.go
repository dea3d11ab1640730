package flows

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (d *decider) editCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "edit [FILE]",
		Short: "Decide all items in your editor",
		Long: `Open a file in $VISUAL or $EDITOR with a line for every open item. The first word of each
line is the decision. If lines are invalid, their errors are printed, nothing is decided,
and the file is kept: decide edit FILE opens it again.`,
		Example: `  lockkeeper decide edit
  EDITOR='code --wait' lockkeeper decide edit`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usage(cmd, "takes one file at most")
			}
			return d.deciding(cmd, func(ctx context.Context) error { return d.edit(ctx, strings.Join(args, ""), note) })
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "a note on all decisions")
	return cmd
}

// edit lets a person decide in an editor.
func (d *decider) edit(ctx context.Context, path, note string) (err error) {
	command, err := d.editor()
	if err != nil {
		return err
	}
	own := path == ""
	if own {
		if path, err = d.writeEditable(ctx); err != nil || path == "" {
			return err
		}
	} else {
		path = d.Path(path)
	}
	lines, err := d.edited(ctx, command, path)
	if err != nil {
		return err
	}
	var choices []acts.Choice
	for _, l := range lines {
		for _, r := range l.items {
			if l.decision != "" {
				choices = append(choices, acts.Choice{Ref: r, Decision: l.decision, Notes: note})
			}
		}
	}
	var v acts.Verdict
	if len(choices) > 0 {
		v, err = d.flow.Decide(ctx, choices, nil)
	}
	if err != nil || len(v.Refused) > 0 {
		v.Refused = append(v.Refused, lockkeeper.WithNext(errors.New("your file is kept as "+path), d.editAgain(path)))
	} else if own {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if len(choices) == 0 && err == nil && !d.JSON {
		fmt.Fprintln(d.Out, "nothing is decided: every item is still open")
		return nil
	}
	return d.tell(v, err)
}

// editAgain returns the command that opens a file again.
func (d *decider) editAgain(path string) string {
	return d.flow.Command("decide", "edit", shellword.Join([]string{path}))
}

// writeEditable writes a file with the open items.
func (d *decider) writeEditable(ctx context.Context) (path string, err error) {
	queue, err := d.flow.Waiting(ctx)
	if err != nil {
		return "", err
	}
	lines, apart := editableItems(queue)
	if len(lines)+len(apart) == 0 {
		return "", &lockkeeper.RefusedError{Act: "edit", Reason: "no item of the flow " + d.flow.Flow.Name + " is open", Next: d.flow.Command("decide")}
	}
	f, err := os.CreateTemp("", "lockkeeper-decide-*.txt")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var text strings.Builder
	text.WriteString(editHelp)
	for _, l := range lines {
		fmt.Fprintln(&text, l)
	}
	for _, r := range apart {
		fmt.Fprintf(&text, "# cannot be written in this file: %s\n", oneLine(r.String()))
	}
	_, err = f.WriteString(text.String())
	return f.Name(), err
}

// edited runs the editor until the file is valid, or the person stops.
func (d *decider) edited(ctx context.Context, command, path string) ([]editable, error) {
	for {
		if err := d.runEditor(ctx, command, path); err != nil {
			return nil, lockkeeper.WithNext(fmt.Errorf("%w; nothing is decided, and the file is %s", err, path), d.editAgain(path))
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines, wrong := readEditable(string(text))
		stale, err := d.compare(ctx, lines)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, stale...)
		if len(wrong) == 0 {
			return lines, nil
		}
		slices.SortStableFunc(wrong, func(a, b lineError) int { return cmp.Compare(a.number, b.number) })
		var reasons []string
		for _, w := range wrong {
			reasons = append(reasons, fmt.Sprintf("%s:%d: %s", path, w.number, w.reason))
			if !d.JSON {
				fmt.Fprintln(d.Err, term.Clean(reasons[len(reasons)-1]))
			}
		}
		refusal := &lockkeeper.InputError{Field: "file", Value: path, Reason: term.Counted(len(wrong), "line") + " invalid; nothing is decided", Next: d.editAgain(path)}
		if d.JSON {
			refusal.Reason += ": " + strings.Join(reasons, "; ")
		}
		if !d.again() {
			return nil, refusal
		}
	}
}

// again asks whether to edit the file again. Without a terminal the answer is no.
func (d *decider) again() bool {
	if d.JSON || !d.Attended() {
		return false
	}
	fmt.Fprint(d.Err, "Press Enter to edit the file again, or type q to leave it: ")
	line, err := bufio.NewReader(d.In).ReadString('\n')
	return (err == nil || err == io.EOF && line != "") && strings.TrimSpace(line) == ""
}

// compare returns an error for each line that does not match its item.
func (d *decider) compare(ctx context.Context, lines []editable) (wrong []lineError, err error) {
	units := map[string]*progress.Unit{}
	for _, l := range lines {
		for _, r := range l.items {
			if !slices.Contains(d.flow.Units, r.Unit) {
				wrong = append(wrong, lineError{l.number, "unknown unit " + r.Unit})
				continue
			}
			if units[r.Unit] == nil {
				if units[r.Unit], err = d.flow.Tracker.Unit(ctx, r.Unit); err != nil {
					return nil, err
				}
			}
			switch item, ok := units[r.Unit].Item(r.Item); {
			case !ok:
				wrong = append(wrong, lineError{l.number, "unknown item " + itemName(r)})
			case oneLine(item.Description) != l.words:
				wrong = append(wrong, lineError{l.number, itemName(r) + " has another description: " + oneLine(item.Description)})
			}
		}
	}
	return wrong, nil
}

// editor returns the editor command.
func (d *decider) editor() (string, error) {
	for _, variable := range []string{"VISUAL", "EDITOR"} {
		if command, _ := d.Lookup(variable); command != "" {
			return command, nil
		}
	}
	if term.IsTerminal(d.In) {
		return "vi", nil
	}
	return "", &lockkeeper.InputError{Field: "EDITOR", Reason: "no editor is set, and this is not a terminal", Next: "set EDITOR, or decide on the command line"}
}

// runEditor opens the file as git does: a shell splits the command.
func (d *decider) runEditor(ctx context.Context, command, path string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command+` "$@"`, command, path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.In, d.IO.Out, d.Err
	cmd.Dir, cmd.Env = d.Base(), d.Env
	if d.JSON { // standard output is for one JSON value
		cmd.Stdout = d.Err
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %s: %w", command, err)
	}
	return nil
}
