package detect

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/generated"
)

// A Found is what Look found in a codebase, and the values that it proposes.
type Found struct {
	Stacks    []string `json:"stacks"`           // languages and frameworks
	Managers  []string `json:"package_managers"` // package managers with a file in the codebase
	Layout    string   `json:"layout"`
	Sources   []string `json:"source_dirs"` // top-level directories with source files
	TestDirs  []string `json:"test_dirs"`
	Generated []string `json:"generated"` // files and directories that tools make, or that git ignores
	Caches    []string `json:"caches"`    // directories of tools, in the home directory
	Hooks     []string `json:"hook_managers"`
	Agents    []string `json:"agents"` // installed agent programs

	Writes  []string `json:"allowed_write_paths"`
	Build   string   `json:"build,omitempty"`
	Test    string   `json:"test_command,omitempty"`
	PerFile string   `json:"test_file_command,omitempty"` // the command that tests one file of a Rails application; Test then runs the whole suite
	Checks  []string `json:"checks"`                      // active CI checks
	Offered []string `json:"offered"`                     // checks that work here, which the codebase does not use yet
	Agent   []string `json:"agent,omitempty"`             // the name of the agent, and its command if it has no adapter
	Notes   []string `json:"notes"`                       // what a person must know, such as a missing program
}

// Look looks at a codebase. environ is the environment of git.
func Look(ctx context.Context, root string, env func(string) (string, bool), environ []string) (*Found, error) {
	t, err := openTree(ctx, root, env, environ)
	if err != nil {
		return nil, err
	}
	f := &Found{Layout: "plain"}
	if config.IsRails(root) {
		f.Layout = config.Rails
	}
	f.survey(t)
	f.writes(t)
	f.surroundings(t)
	return f, nil
}

// survey finds the stacks and their commands.
func (f *Found) survey(t *tree) {
	var tests []command
	own, declared := t.declaredTest()
	found := make([][]module, len(stacks))
	bare := true // no stack has a manifest
	for i, s := range stacks {
		found[i] = t.modules(s.manifests)
		bare = bare && len(found[i]) == 0
	}
	for i, s := range stacks {
		modules := found[i]
		if s.is != nil {
			modules = slices.DeleteFunc(modules, func(m module) bool { return !s.is(m) })
		}
		if len(modules) == 0 && !(bare && t.isWrittenIn(s)) {
			continue
		}
		if len(modules) == 0 {
			modules = []module{{tree: t}}
		}
		f.Stacks = append(f.Stacks, s.name)
		f.Build = cmp.Or(f.Build, s.build)
		add(&f.Caches, s.caches...)
		f.dirs(t, s)
		for _, m := range modules {
			f.manager(m, s)
			f.checks(m, s)
			if c, ok := f.tests(m, s, declared); ok && !slices.Contains(tests, c) {
				tests = append(tests, c)
			}
		}
	}
	if len(f.Stacks) == 0 && t.hasExt(".md") {
		f.Stacks = append(f.Stacks, "Markdown")
	}
	if page := t.page(); len(tests) == 0 && page != "" && onlyDocuments(f.Stacks) && t.installed("lockkeeper") {
		tests = []command{{"lockkeeper", "lockkeeper links --deep " + page}} // links also checks the pages of a site whose generator is missing
	}
	if declared && (f.Layout != config.Rails || len(tests) == 0) {
		tests = []command{own}
	}
	var words []string
	for _, c := range tests {
		words = append(words, c.text)
	}
	f.Test = strings.Join(words, " && ")
	if f.Layout == config.Rails && strings.HasSuffix(f.Test, "rails test") {
		f.PerFile = f.Test + " {path}"
	}
}

// onlyDocuments reports whether a codebase with these stacks has no program.
func onlyDocuments(stacks []string) bool {
	return !slices.ContainsFunc(stacks, func(name string) bool { return !slices.Contains(documents, name) })
}

// page returns a page of Markdown, the first one in the root if it has any.
func (t *tree) page() (first string) {
	for _, name := range t.names {
		if path.Ext(name) != ".md" || generated.Contains(name) || !isPlainPath(name) {
			continue
		}
		if !strings.Contains(name, "/") {
			return name
		}
		first = cmp.Or(first, name)
	}
	return first
}

// isWrittenIn reports whether a codebase without manifests has source files of a language.
func (t *tree) isWrittenIn(s stack) bool {
	return s.test != nil && s.managers != nil && t.hasExt(s.sources...)
}

func (t *tree) hasExt(list ...string) bool {
	return slices.ContainsFunc(t.names, func(name string) bool { return slices.Contains(list, path.Ext(name)) && !generated.Contains(name) })
}

// tests returns the command that tests a module, if it can run here.
func (f *Found) tests(m module, s stack, declared bool) (command, bool) {
	if s.test == nil {
		return command{}, false
	}
	list := s.test(m)
	for _, c := range list {
		if m.runs(c.program) {
			return command{c.program, m.within(c.text)}, true
		}
	}
	if len(list) > 0 && !declared {
		last := list[len(list)-1]
		add(&f.Notes, "the tests of "+s.name+" are not run, because "+last.program+" is not installed: "+m.within(last.text))
	}
	return command{}, false
}

func (f *Found) manager(m module, s stack) {
	for _, manager := range s.managers {
		if name := m.first(manager.files...); name != "" {
			add(&f.Managers, manager.name)
			return
		}
	}
}

// checks adds the checks whose programs are there.
func (f *Found) checks(m module, s stack) {
	for _, c := range s.checks {
		if !m.runs(c.program) {
			continue
		}
		list := &f.Offered
		if m.holds(c.configured...) || c.in != nil && c.in(m) {
			list = &f.Checks
		}
		add(list, m.within(c.text))
	}
}

// dirs adds the top-level directories with sources and tests, and the generated paths.
func (f *Found) dirs(t *tree, s stack) {
	for _, name := range t.names {
		top, _, below := strings.Cut(name, "/")
		if !slices.Contains(s.sources, path.Ext(name)) || generated.Contains(name) {
			continue
		}
		if !below {
			top = "."
		}
		add(&f.Sources, top)
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if slices.Contains([]string{"test", "tests", "spec", "__tests__"}, path.Base(dir)) && len(f.TestDirs) < mostListed {
				add(&f.TestDirs, dir)
			}
		}
	}
	for _, name := range s.generated {
		if t.exists(name) {
			add(&f.Generated, name)
		}
	}
}

// mostListed bounds the lists of paths in a proposal. More directories are the whole codebase.
const mostListed = 24

// writes proposes what agents may change: the directories that are not generated, and the files in
// the root, or everything if there are no directories with sources.
func (f *Found) writes(t *tree) {
	for _, name := range t.ignored {
		if len(f.Generated) < mostListed {
			add(&f.Generated, strings.TrimSuffix(name, "/"))
		}
	}
	for _, name := range t.names {
		top, _, below := strings.Cut(name, "/")
		if below && (strings.HasPrefix(top, ".") || generated.Contains(top)) || !below && strings.HasPrefix(top, ".") {
			continue
		}
		add(&f.Writes, top)
	}
	if len(f.TestDirs) == 0 {
		add(&f.Writes, "test", "tests")
	}
	if f.Layout == config.Rails {
		f.Writes = slices.DeleteFunc([]string{"app", "config/locales", "config/routes.rb", "db", "lib", "spec", "test"}, func(name string) bool { return !t.exists(name) })
	}
	odd := slices.ContainsFunc(f.Writes, func(name string) bool { return !isPlainPath(name) })
	if len(f.Writes) == 0 || len(f.Writes) > mostListed || odd || f.Layout != config.Rails && (len(f.Sources) == 0 || slices.Contains(f.Sources, ".")) {
		f.Writes = []string{"."}
	}
	slices.Sort(f.Writes)
}

// isPlainPath reports whether a path needs no quotes in a configuration file.
func isPlainPath(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/", r))
	}) && !strings.HasPrefix(name, "-")
}

// add appends values that are not in a list yet.
func add(list *[]string, values ...string) {
	for _, v := range values {
		if !slices.Contains(*list, v) {
			*list = append(*list, v)
		}
	}
}
