package config

import (
	"fmt"
	"strings"
)

// Nearest returns the known key that is most similar to a mistyped one. Case, underscores and
// dashes do not count.
func Nearest(typed string, known []string) (string, bool) {
	plain := strings.NewReplacer("_", "", "-", "")
	typed = plain.Replace(strings.ToLower(typed))
	if len(typed) > 64 {
		return "", false
	}
	best, found := 1+len(typed)/3, ""
	for _, k := range known {
		if d := distance(typed, plain.Replace(k)); d < best {
			best, found = d, k
		}
	}
	return found, found != ""
}

// Suggest returns the next step after an unknown name: the names that resemble it, or all names if they
// are few.
func Suggest(typed string, known []string) string {
	const few, most = 10, 5
	if near, ok := Nearest(typed, known); ok {
		return "did you mean " + near + "?"
	}
	var within []string
	for _, k := range known {
		if typed != "" && strings.Contains(strings.ToLower(k), strings.ToLower(typed)) {
			within = append(within, k)
		}
	}
	switch {
	case len(within) > 0:
		return "did you mean " + some(within, most) + "?"
	case len(known) <= few:
		return "use one of " + strings.Join(known, ", ")
	}
	return "use one of " + some(known, most) + ", or a pattern such as " + known[0][:strings.LastIndexByte(known[0], '/')+1] + "*"
}

// some lists the first names, and how many more there are.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// distance counts the insertions, deletions, replacements and swaps that turn a into b.
func distance(a, b string) int {
	rows := make([]int, 3*(len(b)+1))
	before, last, row := rows[:len(b)+1], rows[len(b)+1:2*(len(b)+1)], rows[2*(len(b)+1):]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
