package hook

import (
	_ "embed" // embeds manifests.txt
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

//go:embed manifests.txt
var manifestsText string

// A manifestForm is one way to call a package manager that rewrites files of the package.
type manifestForm struct {
	act     []string // the first operands
	files   []string
	further bool // the call needs an operand after act, such as the name of a package
}

// manifests returns the lines of manifests.txt by program.
var manifests = sync.OnceValue(func() map[string][]manifestForm {
	table := map[string][]manifestForm{}
	for line := range strings.Lines(manifestsText) {
		names, rest, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok || line[0] == '#' {
			continue
		}
		files, further := strings.CutSuffix(rest, " +")
		for name := range strings.SplitSeq(names, ", ") {
			words := strings.Fields(name)
			table[words[0]] = append(table[words[0]], manifestForm{words[1:], strings.Fields(files), further})
		}
	}
	return table
})

// elsewhere lists options with which a package manager works elsewhere or writes nothing.
func elsewhere() []string {
	return []string{"--dry-run", "--help", "-h", "-g", "--global", "--no-save", "--prefix", "-C", "--dir", "--cwd", "--directory", "--project", "--manifest-path", "--working-dir", "-d",
		"-w", "--workspace", "--filter", "-F", "-p", "--package", "--script", "--check"}
}

// packages notes the files that a package manager rewrites, if no other holder has them. It may leave
// them as they are, so they are not claimed.
func (r *reader) packages(name string, args []string) {
	if slices.ContainsFunc(args, func(a string) bool { option, _, _ := strings.Cut(a, "="); return slices.Contains(elsewhere(), option) }) {
		return
	}
	operands := noValues.read(args).all()
	for _, f := range manifests()[name] {
		if n := len(f.act); len(operands) < n || !slices.Equal(operands[:n], f.act) || f.further && len(operands) == n {
			continue
		}
		for _, file := range f.files {
			if at := nearest(r.dir, file); at != "" {
				r.plan.Names = append(r.plan.Names, at)
			}
		}
	}
}

// nearest returns the file of a name in a directory or the nearest one above it, or "".
func nearest(dir, name string) string {
	for {
		if at := filepath.Join(dir, name); isThere(at) {
			return at
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
}
