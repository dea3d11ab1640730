package flows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/cli/term"
)

// openWord marks an item that stays open.
const openWord = "open"

// editable is a line of the file of decide edit: the decision, the item or several equal ones,
// their rating, and their description.
//
//	todo  blog/posts/i3,blog/comments/i1  high/low  Load the authors with the comments
type editable struct {
	number   int           // line number, starting at 1
	decision flow.Decision // empty: stays open
	items    []progress.Ref
	rating   string
	words    string // description in one line
}

// editHelp is the start of the file.
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

// lineError is an error in a line of the file.
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
