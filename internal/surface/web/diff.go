package web

import (
	"regexp"
	"strconv"
	"strings"
)

// A diffLine is one line of a diff with its numbers in both files.
type diffLine struct {
	Kind     string // add, del, hunk; empty: unchanged
	Old, New int    // 0: the line is not in that file
	Sign     string
	Text     string
}

// linesShown limits how many lines of one file a page shows.
const linesShown = 4_000

// hunk matches the first line of a hunk, with its start in both files.
var hunk = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)`)

// linesOf parses the unified diff of one file, up to the limit, and returns how many lines it left out.
func linesOf(unified string) (list []diffLine, left int) {
	var was, is int // numbers of the next line
	inHunk := false
	for line := range strings.Lines(unified) {
		line = strings.TrimSuffix(line, "\n")
		if begins := hunk.FindStringSubmatch(line); begins != nil {
			was, _ = strconv.Atoi(begins[1])
			is, _ = strconv.Atoi(begins[2])
			inHunk = true
			list = append(list, diffLine{Kind: "hunk", Text: line})
			continue
		}
		if !inHunk { // the header with the file names
			continue
		}
		if len(list) >= linesShown {
			left++
			continue
		}
		sign, rest := " ", line
		if line != "" {
			sign, rest = line[:1], line[1:]
		}
		switch sign {
		case "+":
			list = append(list, diffLine{Kind: "add", New: is, Sign: "+", Text: rest})
			is++
		case "-":
			list = append(list, diffLine{Kind: "del", Old: was, Sign: "−", Text: rest})
			was++
		case `\`:
			list = append(list, diffLine{Kind: "hunk", Text: rest})
		default:
			list = append(list, diffLine{Old: was, New: is, Text: rest})
			was++
			is++
		}
	}
	return list, left
}
