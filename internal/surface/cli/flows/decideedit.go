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
	"path/filepath"
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
		Long: `Open a file in $VISUAL or $EDITOR with a line for every open item, and decide as
the words before them then say. A file that cannot be read is told line by line,
and kept: nothing is decided, and edit FILE goes on with it.`,
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
	cmd.Flags().StringVar(&note, "note", "", "what you want to say of all of them")
	return cmd
}

// edit has a person decide in an editor.
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
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(d.Base(), path)
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
		v, err = d.desk.Decide(ctx, choices, nil)
	}
	if err != nil || len(v.Refused) > 0 {
		v.Refused = append(v.Refused, fmt.Errorf("what you wrote is kept in %s; next: %s", path, d.editAgain(path)))
	} else if own {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if len(choices) == 0 && err == nil && !d.JSON {
		fmt.Fprintln(d.Out, "nothing is decided: every item is left open")
		return nil
	}
	return d.tell(v, err)
}

// editAgain is the command that goes on with a file.
func (d *decider) editAgain(path string) string {
	return d.desk.Command("decide", "edit", shellword.Join([]string{path}))
}

// writeEditable writes a file for the open items; no path: there are none.
func (d *decider) writeEditable(ctx context.Context) (path string, err error) {
	queue, err := d.desk.Waiting(ctx)
	if err != nil {
		return "", err
	}
	lines, apart := editableItems(queue)
	if len(lines)+len(apart) == 0 {
		return "", &lockkeeper.RefusedError{Act: "edit", Reason: "no item of the flow " + d.desk.Flow.Name + " is open", Next: d.desk.Command("decide")}
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
		fmt.Fprintf(&text, "# its name is no word for a file like this: %s\n", oneLine(r.String()))
	}
	_, err = f.WriteString(text.String())
	return f.Name(), err
}

// edited has the file edited until it can be read, or the person has enough.
func (d *decider) edited(ctx context.Context, command, path string) ([]editable, error) {
	for {
		if err := d.runEditor(ctx, command, path); err != nil {
			return nil, fmt.Errorf("%w; nothing is decided, and the file is %s; next: %s", err, path, d.editAgain(path))
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
		refusal := &lockkeeper.InputError{Field: "file", Value: path, Reason: term.Counted(len(wrong), "line") + " cannot be taken, and nothing is decided", Next: d.editAgain(path)}
		if d.JSON {
			refusal.Reason += ": " + strings.Join(reasons, "; ")
		}
		if !d.again() {
			return nil, refusal
		}
	}
}

// again asks whether the file is to be edited once more; where nobody sits it is not.
func (d *decider) again() bool {
	if d.JSON || !d.Attended() {
		return false
	}
	fmt.Fprint(d.Err, "Press Enter to edit the file again, or type q to leave it: ")
	line, err := bufio.NewReader(d.In).ReadString('\n')
	return (err == nil || err == io.EOF && line != "") && strings.TrimSpace(line) == ""
}

// compare finds the lines that are not about the items as they are.
func (d *decider) compare(ctx context.Context, lines []editable) (wrong []lineError, err error) {
	units := map[string]*progress.Unit{}
	for _, l := range lines {
		for _, r := range l.items {
			if !slices.Contains(d.desk.Units, r.Unit) {
				wrong = append(wrong, lineError{l.number, "there is no unit " + r.Unit})
				continue
			}
			if units[r.Unit] == nil {
				if units[r.Unit], err = d.desk.Book.Unit(ctx, r.Unit); err != nil {
					return nil, err
				}
			}
			switch item, ok := units[r.Unit].Item(r.Item); {
			case !ok:
				wrong = append(wrong, lineError{l.number, "there is no item " + itemName(r)})
			case oneLine(item.Description) != l.words:
				wrong = append(wrong, lineError{l.number, itemName(r) + " says something else: " + oneLine(item.Description)})
			}
		}
	}
	return wrong, nil
}

// editor is the command that a person edits with.
func (d *decider) editor() (string, error) {
	for _, variable := range []string{"VISUAL", "EDITOR"} {
		if command, _ := d.Lookup(variable); command != "" {
			return command, nil
		}
	}
	if term.IsTerminal(d.In) {
		return "vi", nil
	}
	return "", &lockkeeper.InputError{Field: "EDITOR", Reason: "no editor is set, and this is no terminal", Next: "set EDITOR, or decide on the command line"}
}

// runEditor opens the file as git opens its own: the shell finds the words of the command.
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
