package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sample returns a lockkeeper.yaml that sets nothing. Every value is a comment with its default.
func Sample() string {
	var b strings.Builder
	b.WriteString(`# Configuration of Lockkeeper. Lines such as "#key: value" show a default, or an example if there is
# no default. Remove the # to change it. Durations: 30m, 45s, 1h30m, 7d, or whole seconds.
# "lockkeeper config" prints every value and its source.
`)
	var open []string         // headings of the current line
	said := map[string]bool{} // section texts that were printed
	for _, f := range fieldsOf(Default()) {
		value := cmp.Or(f.shown(), f.example) // a value without a default shows an example
		if value == "" {                      // `lockkeeper init` writes this value
			continue
		}
		path := strings.Split(f.key, ".")
		name, groups := path[len(path)-1], path[:len(path)-1]
		same := 0
		for same < min(len(groups), len(open)) && groups[same] == open[same] {
			same++
		}
		for depth := same; depth < len(groups); depth++ {
			if depth == 0 {
				fmt.Fprintf(&b, "\n# %s\n", groupDoc(groups[0]))
			}
			fmt.Fprintf(&b, "%s%s:\n", indent(depth), groups[depth])
		}
		open = groups
		if len(groups) == 0 {
			b.WriteByte('\n')
		}
		if !said[f.doc()] {
			said[f.doc()] = true
			fmt.Fprintf(&b, "%s# %s\n", indent(len(groups)), f.doc())
		}
		if f.enum != nil {
			fmt.Fprintf(&b, "%s# One of: %s.\n", indent(len(groups)), f.allowed())
		}
		if f.isList() {
			value = "[" + value + "]"
		}
		fmt.Fprintf(&b, "%s#%s: %s\n", indent(len(groups)), name, value)
	}
	for _, key := range slices.Sorted(maps.Keys(tablesOf(Default()))) {
		fmt.Fprintf(&b, "\n# %s\n#%s:\n", groupDoc(key), key)
	}
	return b.String()
}

func indent(depth int) string { return strings.Repeat("  ", depth) }
