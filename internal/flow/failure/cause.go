package failure

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// A Case is one failed piece of work.
type Case struct {
	Names   []string // of the work, which are no part of the cause
	Reason  string   // why it failed, as people read it
	Failure *Failure // how its command failed; nil: no command did
}

// A Cause is what several failures have in common: a test that fails in all of them, or a message.
type Cause struct {
	ID    string
	Title string
	Test  string // the test that fails in all of them; empty: they have the same message
	Cases []int  // the positions of the cases, in order
}

// Causes groups failures: those in which the same test fails, and the others by their message without
// paths, numbers and ids. A failure of several tests belongs to the one that fails most often. The
// most frequent cause comes first.
func Causes(cases []Case) (list []Cause) {
	left := make([]int, len(cases))
	for i := range cases {
		left[i] = i
	}
	for {
		test := mostFrequent(cases, left)
		if test == "" {
			break
		}
		c := Cause{ID: ID([]string{test}), Title: test, Test: test}
		left = slices.DeleteFunc(left, func(i int) bool {
			has := slices.Contains(cases[i].tests(), test)
			if has {
				c.Cases = append(c.Cases, i)
			}
			return has
		})
		list = append(list, c)
	}
	byMessage := map[string]int{}
	for _, i := range left {
		message := cases[i].message()
		at, known := byMessage[message]
		if !known {
			at, byMessage[message] = len(list), len(list)
			list = append(list, Cause{ID: ID([]string{message}), Title: cases[i].title()})
		}
		list[at].Cases = append(list[at].Cases, i)
	}
	slices.SortStableFunc(list, func(a, b Cause) int { return cmp.Compare(len(b.Cases), len(a.Cases)) })
	return list
}

func (c Case) tests() []string {
	if c.Failure == nil || c.Failure.TimedOut {
		return nil
	}
	return c.Failure.Tests
}

// mostFrequent returns the test that most of the cases have, or "" if none has a test.
func mostFrequent(cases []Case, of []int) (test string) {
	count := map[string]int{}
	for _, i := range of {
		for _, t := range cases[i].tests() {
			count[t]++
			if n := count[t] - count[test]; test == "" || n > 0 || n == 0 && t < test {
				test = t
			}
		}
	}
	return test
}

// message returns what the case has in common with others of the same cause.
func (c Case) message() string {
	if c.Failure != nil && c.Failure.Text != "" {
		return c.Failure.Command + "\n" + c.without(c.Failure.Text)
	}
	return c.title()
}

// titleShown limits the length of a title.
const titleShown = 160

// title says in one line why the work failed.
func (c Case) title() string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.Reason), "\n")
	title := []rune(c.without(line))
	if len(title) > titleShown {
		title = append(title[:titleShown], '…')
	}
	return string(title)
}

// located matches what differs between cases of one cause: ids of items and calls, and paths.
var located = []*regexp.Regexp{
	regexp.MustCompile(`\b[jc][A-Z2-7]{12,26}\b|\b[jgw][0-9][0-9a-z]{3,}\b`),
	regexp.MustCompile(`(?:\.{0,2}/)?(?:[\w@.+-]+/)+[\w@.+-]*(?::\d+)*`),
}

// without replaces the names of the work, and what differs between cases of one cause.
func (c Case) without(text string) string {
	names := slices.SortedFunc(slices.Values(c.Names), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		if name != "" {
			text = strings.ReplaceAll(text, name, "…")
		}
	}
	for _, v := range located {
		text = v.ReplaceAllString(text, "…")
	}
	for _, v := range varying {
		text = v.ReplaceAllString(text, "…")
	}
	return strings.ReplaceAll(text, "#", "…")
}

// excerptLines is how many lines of an output Excerpt returns at most.
const excerptLines = 8

var failing = regexp.MustCompile(`(?i)\b(?:error|exception|fail(?:ed|ure|ures)?|panic|fatal)\b`)

// Excerpt returns the first lines of an output that are about a test, or else about any failure, or
// else its last lines.
func Excerpt(output, test string) (lines []string) {
	for line := range strings.Lines(plain(output, nil)) {
		if line = strings.TrimRight(line, " \t\n"); line != "" {
			lines = append(lines, line)
		}
	}
	at := -1
	if test != "" {
		last := test[strings.LastIndexAny(test, " /:#.")+1:]
		at = slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, test) })
		if at < 0 && len(last) > 3 {
			at = slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, last) })
		}
	}
	if at < 0 {
		at = slices.IndexFunc(lines, failing.MatchString)
	}
	if at < 0 {
		at = max(0, len(lines)-excerptLines)
	}
	return lines[at:min(len(lines), at+excerptLines)]
}
