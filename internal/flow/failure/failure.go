package failure

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Failure describes how a command failed.
type Failure struct {
	Command  string   `json:"command"`
	Exit     int      `json:"exit"`
	TimedOut bool     `json:"timed_out,omitempty"`
	Tests    []string `json:"tests,omitempty"` // names of the tests that failed, sorted; empty: the output names none
	Text     string   `json:"text,omitempty"`  // the normalized last lines of the output, if it names no tests
	Last     string   `json:"last,omitempty"`  // the last line of the output as it was, for people
}

// Of describes the failure of a command by its output. It removes the places from the output: the
// directories that differ from run to run.
func Of(command string, exit int, timedOut bool, output string, places ...string) Failure {
	f := Failure{Command: command, Exit: exit, TimedOut: timedOut}
	output = plain(output, places)
	if f.Tests = testsIn(output); len(f.Tests) == 0 {
		lines := endOf(output)
		f.Text = normalized(lines)
		if len(lines) > 0 {
			f.Last = lines[len(lines)-1]
		}
	}
	return f
}

// IsIn reports whether earlier runs already had this failure: all its failing tests or, if the output
// names none, the same last lines of the same command.
func (f Failure) IsIn(earlier []Failure) bool {
	var known []string
	for _, e := range earlier {
		if f.TimedOut || len(f.Tests) == 0 {
			if f.Command == e.Command && f.Exit == e.Exit && f.TimedOut == e.TimedOut && len(e.Tests) == 0 && (f.TimedOut || f.Text == e.Text) {
				return true
			}
			continue
		}
		if !e.TimedOut {
			known = append(known, e.Tests...)
		}
	}
	return len(f.Tests) > 0 && !f.TimedOut && !slices.ContainsFunc(f.Tests, func(test string) bool { return !slices.Contains(known, test) })
}

// Parts returns what failed, one by one: each test, or else the end of the output.
func (f Failure) Parts() []string {
	switch {
	case f.TimedOut:
		return []string{f.Command + " timed out"}
	case len(f.Tests) > 0:
		return f.Tests
	}
	return []string{fmt.Sprintf("exit status %d:\n%s", f.Exit, f.Text)}
}

// Title names parts of failures in one line.
func Title(parts []string) string {
	if len(parts) == 0 {
		return "unknown"
	}
	first := strings.TrimSpace(parts[0])
	if at := strings.LastIndexByte(first, '\n'); at >= 0 { // the last line of an output says most
		first = first[at+1:]
	}
	if len(parts) > 1 {
		first += fmt.Sprintf(" and %d more", len(parts)-1)
	}
	return first
}

// ID returns a short name of parts of failures, which is the same for the same parts.
func ID(parts []string) string {
	sorted := slices.Sorted(slices.Values(parts))
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\x00")))
	return hex.EncodeToString(sum[:])[:8]
}

// String says in one line what failed.
func (f Failure) String() string {
	if f.TimedOut || len(f.Tests) == 0 {
		end := cmp.Or(f.Last, Title([]string{f.Text}), "no output")
		if f.TimedOut {
			end = "it reached the time limit"
		}
		return fmt.Sprintf("%q ended with exit status %d: %s", f.Command, f.Exit, end)
	}
	return Title(f.Tests)
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]")

// plain removes colors, carriage returns and places.
func plain(output string, places []string) string {
	output = strings.ReplaceAll(escapes.ReplaceAllString(output, ""), "\r", "")
	for _, place := range slices.SortedFunc(slices.Values(places), func(a, b string) int { return len(b) - len(a) }) {
		if place != "" {
			output = strings.ReplaceAll(output, place+"/", "")
			output = strings.ReplaceAll(output, place, ".")
		}
	}
	return output
}

// linesCompared is how many of the last lines of an output count.
const linesCompared = 12

// varying matches what differs from run to run, in this order: temporary files, addresses and
// hashes, durations, and numbers.
var varying = []*regexp.Regexp{
	regexp.MustCompile(`(?:/private)?(?:/var)?/tmp/[^\s:'"()]+`),
	regexp.MustCompile(`\b0x[0-9a-fA-F]+\b|\b[0-9a-f]*[0-9][0-9a-f]{6,}[0-9a-f]*\b`),
	regexp.MustCompile(`\b[0-9]+(?:\.[0-9]+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?|h)\b`),
	regexp.MustCompile(`[0-9]+(?:[.:,/-][0-9]+)*`),
}

// endOf returns the last lines of an output that are not empty.
func endOf(output string) (lines []string) {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-linesCompared):]
}

// normalized joins lines without what differs from run to run.
func normalized(lines []string) string {
	text := strings.Join(lines, "\n")
	for _, v := range varying {
		text = v.ReplaceAllString(text, "#")
	}
	return text
}
