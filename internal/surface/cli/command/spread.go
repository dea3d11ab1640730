package command

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/term"
)

// Spread returns the paths that a value such as a.py,b.py or src/*.py names: the parts of a list, and the files
// that match a pattern. With dirs a pattern also matches directories. A value that exists is one path, whatever
// characters it has.
func (p *Program) Spread(value string, dirs bool) ([]string, error) {
	if acts.Exists(p.Path(value)) {
		return []string{value}, nil
	}
	var paths []string
	for _, part := range alternatives(value) {
		if part == "" && strings.Contains(value, ",") {
			return nil, &lockkeeper.InputError{Field: "path", Value: value, Reason: "a list with an empty path", Next: "separate paths with one comma each; for a name with a comma use --write-from or --read-from"}
		}
		found, err := acts.Match(p.Path, part, dirs)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(paths) != 1 || paths[0] != value {
		p.noteSpread(value, paths)
	}
	return paths, nil
}

func (p *Program) noteSpread(value string, paths []string) {
	if !p.JSON {
		p.Note("%s is %s", term.Clean(value), term.JoinFew(paths, term.Few(p.Err, notesShown), term.Clean))
	}
}

// alternatives splits a list at its commas. As in a shell, braces around a list make one path of each of its
// elements: src/{a,b}.py is src/a.py and src/b.py.
func alternatives(value string) (list []string) {
	depth, start, open := 0, 0, -1
	for i, c := range value {
		switch c {
		case '{':
			if depth++; depth == 1 {
				open = i
			}
		case '}':
			if depth--; depth == 0 && strings.Contains(value[open:i], ",") {
				end := len(value)
				if next := strings.IndexByte(value[i:], ','); next >= 0 {
					end = i + next
				}
				for _, within := range alternatives(value[open+1 : i]) {
					list = append(list, alternatives(value[start:open]+within+value[i+1:end])...)
				}
				if end == len(value) {
					return list
				}
				return append(list, alternatives(value[end+1:])...)
			}
		case ',':
			if depth <= 0 {
				list, start = append(list, value[start:i]), i+1
			}
		}
	}
	return append(list, value[start:])
}

// NoWords refuses words after the flags of a command that locks paths. Usually the shell expanded a pattern, so
// it suggests the same command with one flag for each path.
func (p *Program) NoWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if err := p.expanded(args, nil); err != nil {
		return err
	}
	return Exactly(0, "no arguments")(cmd, args)
}

// expanded returns an error if words are paths that follow the value of a flag for paths, as in
// --write a.py b.py. The shell makes this of --write *.py. rest is the command after --; nil: there is none.
func (p *Program) expanded(words, rest []string) error {
	i := len(p.Args) - len(words) - len(rest)
	if rest != nil {
		i-- // skips the --
	}
	if i < 1 || !slices.Equal(p.Args[i:i+len(words)], words) {
		return nil
	}
	own := p.Args[:i]
	name, value, whole := strings.Cut(own[i-1], "=")
	if !whole && i > 1 {
		name, value = own[i-2], own[i-1]
	}
	mode, isPath := strings.CutPrefix(name, "--")
	isPath = isPath && slices.Contains([]string{"write", "read", "upgradeable"}, mode)
	paths := 0
	for paths < len(words) && acts.Exists(p.Path(words[paths])) && filepath.Dir(words[paths]) == filepath.Dir(value) {
		paths++
	}
	if !isPath || paths == 0 {
		return nil
	}
	next := "quote the pattern, or give each path its own " + name
	if paths == len(words) {
		given := slices.Concat([]string{"lockkeeper"}, own)
		for _, word := range words {
			given = append(given, name, word)
		}
		if rest != nil {
			given = append(append(given, "--"), rest...)
		}
		next = shellword.Join(given)
	}
	return &lockkeeper.InputError{Field: "path", Value: words[0], Reason: "the shell expanded a pattern after " + name + ", and the flag takes one path", Next: next}
}
