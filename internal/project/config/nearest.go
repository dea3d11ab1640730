package config

import "strings"

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
