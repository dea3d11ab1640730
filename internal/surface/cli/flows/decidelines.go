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

// openWord stands before an item that is left as it is.
const openWord = "open"

// editable is a line of the file in which items are decided: a word, the item, or
// several that say the same, how they are rated, and what they say.
//
//	todo  blog/posts/i3,blog/comments/i1  high/low  Load the authors with the comments
type editable struct {
	number   int           // of the line, from 1
	decision flow.Decision // empty: left open
	items    []progress.Ref
	rating   string
	words    string // as oneLine has them
}

// editHelp is what the file says about itself.
const editHelp = `# What is to become of these items? Write one of these words before each, or its
# first letter:
#
#   todo     do it
#   defer    later: it comes up again in the next run
#   reject   never: it does not come up again
#   open     leave it as it is; a line that is deleted means the same
#
# Items that say the same are on one line; a name that is taken out of it is left
# open. Nothing is decided unless every line can be read. Lines like these are not.

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

// isWritable reports whether an item can be named in the file: its name is one word.
func isWritable(r progress.Ref) bool {
	name := itemName(r)
	return term.Clean(name) == name && !strings.ContainsFunc(name, func(c rune) bool { return c == ',' || c == '#' || unicode.IsSpace(c) })
}

// editableItems makes the lines for the open items of a queue, equal ones once. Those
// that have no name for the file are returned apart.
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

// lineError says what is wrong with a line of the file.
type lineError struct {
	number int
	reason string
}

// readEditable reads the file. All that is wrong is told at once; then nothing counts.
func readEditable(text string) (lines []editable, wrong []lineError) {
	first := map[progress.Ref]int{} // the line of each
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
				wrong = append(wrong, lineError{number, fmt.Sprintf("%s is on line %d already", itemName(r), before)})
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
		return l, errors.New("the words of the item are missing")
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
	return "", fmt.Errorf("%q is none of todo, defer, reject and open", word)
}
