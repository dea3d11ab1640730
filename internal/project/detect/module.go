package detect

import (
	"path"
	"slices"
	"strings"

	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/project/generated"
)

// A module is a directory with the manifest of a stack.
type module struct {
	*tree
	dir      string // relative to the root; empty: the root
	manifest string // base name of the manifest
}

// mostModules bounds how many modules of one stack get commands of their own.
const mostModules = 16

// deepest is how many directories below the root a manifest can be.
const deepest = 4

// modules returns the outermost modules of a stack: the root, or else those nearest to it.
func (t *tree) modules(manifests []string) (list []module) {
	depth := deepest + 1
	for _, name := range t.names {
		d := strings.Count(name, "/")
		if d > depth || d > deepest || !matches(path.Base(name), manifests) || isFixture(name) {
			continue
		}
		if d < depth {
			list, depth = nil, d
		}
		dir := strings.TrimPrefix(path.Dir(name), ".")
		if !slices.ContainsFunc(list, func(m module) bool { return m.dir == dir }) && len(list) < mostModules {
			list = append(list, module{t, dir, path.Base(name)})
		}
	}
	return list
}

// matches reports whether a name is in a list of names and patterns.
func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

func (m module) at(name string) string           { return path.Join(m.dir, name) }
func (m module) text(name string) string         { return m.read(m.at(name)) }
func (m module) holds(names ...string) bool      { return m.first(names...) != "" }
func (m module) mentions(name, word string) bool { return strings.Contains(m.text(name), word) }
func (m module) onDisk(name string) bool         { return m.exists(m.at(name)) }
func (m module) anyMentions(word string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return m.mentions(name, word) })
}

// runs reports whether the program of a command can be started in the module.
func (m module) runs(program string) bool {
	if strings.Contains(program, "/") {
		return m.isProgram(m.at(program))
	}
	return m.installed(program)
}

// first returns the first of some files that the module has, or "".
func (m module) first(names ...string) string {
	for _, name := range names {
		if m.set[m.at(name)] {
			return name
		}
	}
	return ""
}

// below lists the files of the module.
func (m module) below() []string {
	if m.dir == "" {
		return m.names
	}
	from, _ := slices.BinarySearch(m.names, m.dir+"/")
	to, _ := slices.BinarySearch(m.names, m.dir+"0") // 0 is the byte after the slash
	return m.names[from:to]
}

// hasFile reports whether a file in the module has a base name that matches a pattern.
func (m module) hasFile(patterns ...string) bool {
	return slices.ContainsFunc(m.below(), func(name string) bool { return matches(path.Base(name), patterns) && !generated.Contains(name) })
}

// within returns a command that runs in the directory of the module.
func (m module) within(command string) string {
	if m.dir == "" || command == "" {
		return command
	}
	return "(cd " + shellword.Quote(m.dir) + " && " + command + ")"
}
