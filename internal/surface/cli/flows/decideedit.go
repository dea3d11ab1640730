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
	"unicode"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow"
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

func (d *decider) editAgain(path string) string {
	return d.flow.Command("decide", "edit", shellword.Join([]string{path}))
}

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
		return fmt.Errorf("run the editor %s: %w", command, err)
	}
	return nil
}

// openWord marks an item that stays open.
const openWord = "open"

// editable is a line of the file of decide edit: the decision, the item or several equal ones,
// their rating, and their description.
//
//	todo  blog/posts/i3,blog/comments/i1  high/low  Load the authors with the comments
type editable struct {
	number   int           // line number, starting at 1
	decision flow.Decision // empty: the item stays open
	items    []progress.Ref
	rating   string
	words    string // description in one line
}

const editHelp = `# Decide these items. Start each line with one of these words, or its first letter:
#
#   todo     do it
#   defer    later: propose it again in the next run
#   reject   never: do not propose it again
#   open     decide nothing; deleting the line means the same
#
# Equal items share a line; an item whose name you delete stays open. Nothing is decided
# unless every line is valid. Lines that start with # are ignored.

`

func (l editable) String() string {
	word := openWord
	if l.decision != "" {
		word = strings.ToLower(string(l.decision))
	}
	names := make([]string, len(l.items))
	for i, r := range l.items {
		names[i] = itemName(r)
	}
	return fmt.Sprintf("%-6s  %s  %s  %s", word, strings.Join(names, ","), l.rating, l.words)
}

func itemName(r progress.Ref) string { return r.Unit + "/" + r.Item }

// isWritable reports whether the file can name an item: its name is one word.
func isWritable(r progress.Ref) bool {
	name := itemName(r)
	return term.Clean(name) == name && !strings.ContainsFunc(name, func(c rune) bool { return c == ',' || c == '#' || unicode.IsSpace(c) })
}

// editableItems returns the lines for the open items of a queue, equal ones on one line, and
// separately the items that the file cannot name.
func editableItems(queue []progress.Decision) (lines []editable, apart []progress.Ref) {
	var seen []progress.Ref
	for _, g := range queue {
		if g.Ref.Kind != progress.ItemKind || slices.Contains(seen, g.Ref) {
			continue
		}
		l := editable{rating: fact(g, "impact") + "/" + fact(g, "effort"), words: oneLine(fact(g, "description"))}
		for _, r := range append([]progress.Ref{g.Ref}, g.Same...) {
			seen = append(seen, r)
			if isWritable(r) {
				l.items = append(l.items, r)
			} else {
				apart = append(apart, r)
			}
		}
		if len(l.items) > 0 {
			lines = append(lines, l)
		}
	}
	return lines, apart
}

type lineError struct {
	number int
	reason string
}

// readEditable parses the file, and returns all errors at once.
func readEditable(text string) (lines []editable, wrong []lineError) {
	first := map[progress.Ref]int{} // the first line of each item
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		l, err := readLine(line)
		if err != nil {
			wrong = append(wrong, lineError{number, err.Error()})
			continue
		}
		l.number = number
		for _, r := range l.items {
			if before, twice := first[r]; twice {
				wrong = append(wrong, lineError{number, fmt.Sprintf("%s is already on line %d", itemName(r), before)})
			}
			first[r] = number
		}
		lines = append(lines, l)
	}
	return lines, wrong
}

func readLine(line string) (l editable, err error) {
	word, rest := cutWord(line)
	if l.decision, err = readDecision(word); err != nil {
		return l, err
	}
	items, rest := cutWord(rest)
	for name := range strings.SplitSeq(items, ",") {
		r, err := progress.ParseRef(string(progress.ItemKind) + " " + name)
		if err != nil || !isWritable(r) {
			return l, fmt.Errorf("%q is not the name of an item, such as blog/posts/i3", name)
		}
		l.items = append(l.items, r)
	}
	l.rating, rest = cutWord(rest)
	if l.words = oneLine(rest); l.words == "" {
		return l, errors.New("the description of the item is missing")
	}
	return l, nil
}

func cutWord(line string) (word, rest string) {
	line = strings.TrimSpace(line)
	if at := strings.IndexFunc(line, unicode.IsSpace); at >= 0 {
		return line[:at], strings.TrimSpace(line[at:])
	}
	return line, ""
}

func readDecision(word string) (flow.Decision, error) {
	lower := strings.ToLower(word)
	for _, known := range []string{"todo", "defer", "reject", openWord} {
		if lower == known || lower == known[:1] {
			if known == openWord {
				return "", nil
			}
			return flow.Decision(strings.ToUpper(known)), nil
		}
	}
	return "", fmt.Errorf("%q must be todo, defer, reject or open", word)
}
