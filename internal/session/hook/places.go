package hook

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/protect"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/refusal"
)

// place is a codebase, and what a call touches in it.
type place struct {
	root     string
	writes   []Touch
	reads    []Touch
	trees    []string
	names    []string
	guarded  []guarded // of what it writes, what agents never write
	git      []GitAct
	discards []Discard
	shell    bool // a command runs there, or may write there
}

// sorter sorts what a call touches by codebase.
type sorter struct {
	dir  string // where the agent works
	env  func(string) (string, bool)
	list []*place

	guarded  []guarded // where the agent works in no codebase
	checkers map[string]*protect.Checker
}

// guarded is a file that agents never write.
type guarded struct {
	file  string
	class protect.Class
}

// refusal refuses to write it, under the name that people use.
func (g guarded) refusal(name string) refusal.Refusal {
	return refusal.Reserved(name, g.class.Reason(), g.class.Next())
}

// checker returns what is protected in a codebase; empty root: outside of any.
func (s *sorter) checker(root string) (*protect.Checker, error) {
	if known := s.checkers[root]; known != nil {
		return known, nil
	}
	list, err := project.Protection(root, s.env)
	if err != nil {
		return nil, err
	}
	s.checkers[root] = list.Checker()
	return s.checkers[root], nil
}

// places sorts what a call touches. A session's turns concern the codebase that the agent
// works in.
func (k *check) places() ([]*place, error) {
	open, err := k.open()
	if err != nil {
		return nil, err
	}
	c := k.call
	s := &sorter{dir: c.Dir, env: k.world.Env, checkers: map[string]*protect.Checker{}}
	plan := Effects{Writes: spellings(c.Dir, c.Writes), Reads: spellings(c.Dir, c.Reads)}
	for _, t := range plan.Writes {
		if t.Goes {
			plan.discard(c.Tool, t.File)
		}
	}
	if c.Command != "" {
		dir := absolute(c.Dir, c.ShellDir)
		plan = effectsOf(c.Command, dir, s.env)
		plan.Dirs = slices.Concat(open, plan.Dirs, []string{c.Dir, dir})
		k.call.Background = c.Background || plan.Background
		k.programs, k.opaque, k.sweeps = plan.Programs, plan.Opaque, plan.Sweeps
	}
	err = s.sort(plan)
	if c.Event == Before {
		if plan.Reserved != "" {
			k.out.refused = append(k.out.refused, refusal.Reserved(plan.Reserved, "only a person may do it, at a terminal"))
		}
		for _, g := range s.guarded {
			k.out.refused = append(k.out.refused, g.refusal(g.file))
		}
	}
	if c.Command != "" {
		return s.list, errors.Join(err, s.visited(plan.Dirs, c.Command))
	}
	if c.Event != Before && c.Event != After {
		for _, dir := range append(open, c.Dir) {
			_, finding := s.in(dir)
			err = errors.Join(err, finding)
		}
	}
	return s.list, err
}

// open lists, after a command, the codebases in which it began, and at the turns of a session
// those in which it has left something: an agent's shell keeps the directory that a command
// goes to, and the host names that one from then on. A call that began elsewhere is read as
// of there.
func (k *check) open() (roots []string, err error) {
	s := session.Traces{Env: k.world.Env, Agent: k.agent, ID: k.call.Session}
	switch {
	case k.call.Event == Before || k.call.Event == After && k.call.Command == "":
		return nil, nil
	case k.call.Event != After:
		return s.Open()
	}
	roots, dir, err := s.Began(k.call.ID)
	if dir != "" {
		k.call.Dir = dir
	}
	return roots, err
}

// spellings are the files that a tool names, absolute. Where a path leads back out of a
// link it may mean two: a tool goes by the letters or by the links.
func spellings(dir string, files []Touch) (list []Touch) {
	for _, f := range files {
		byLetters := f.File
		if !filepath.IsAbs(byLetters) {
			byLetters = filepath.Join(dir, byLetters)
		}
		f.File = absolute(dir, f.File)
		list = append(list, f)
		if byLetters = filepath.Clean(byLetters); byLetters != f.File {
			f.File = byLetters
			list = append(list, f)
		}
	}
	return list
}

// at is the codebase of a file; nil: it belongs to none.
func (s *sorter) at(file string) (*place, error) {
	root, err := project.RootOf(protect.Real(file), s.env)
	if err != nil || root == "" {
		return nil, err
	}
	for _, p := range s.list {
		if p.root == root {
			return p, nil
		}
	}
	s.list = append(s.list, &place{root: root})
	return s.list[len(s.list)-1], nil
}

// in is the codebase of what is in a directory, which may itself be a root.
func (s *sorter) in(dir string) (*place, error) {
	return s.at(filepath.Join(dir, lockkeeper.GitTarget)) // any name in it
}

// sort puts what is planned where it belongs.
func (s *sorter) sort(plan Effects) error {
	for _, t := range plan.Writes {
		p, err := s.guard(t.File, s.at, func(_ string, checker *protect.Checker) (protect.Class, bool) {
			if isDir(t.File) {
				return checker.File(t.File)
			}
			return checker.Tree(t.File) // a file in the place of a directory hides what is in it
		})
		if err != nil {
			return err
		}
		if p != nil {
			p.writes = append(p.writes, t)
		}
	}
	for _, t := range plan.Trees {
		p, err := s.guard(t.Dir, s.in, func(root string, checker *protect.Checker) (protect.Class, bool) {
			class, is := checker.Tree(t.Dir)
			return class, is && (t.Goes || !s.isRootOrHome(root, t.Dir))
		})
		if err != nil {
			return err
		}
		if p != nil {
			p.trees = append(p.trees, t.Dir)
		}
	}
	for _, f := range plan.Names {
		p, err := s.guard(f, s.at, func(_ string, checker *protect.Checker) (protect.Class, bool) {
			class, is := checker.File(f)
			return class, is && !(class == protect.Git && isDir(f)) // programs often name .git to skip it
		})
		if err != nil {
			return err
		}
		if p != nil {
			p.names = append(p.names, f)
		}
	}
	var failed error
	note := func(p *place, err error, do func(*place)) {
		if failed = errors.Join(failed, err); p != nil {
			do(p)
		}
	}
	for _, t := range plan.Reads {
		p, err := s.at(t.File)
		note(p, err, func(p *place) { p.reads = append(p.reads, t) })
	}
	for _, d := range plan.Discards {
		p, err := s.in(d.Dir)
		note(p, err, func(p *place) { p.discards = append(p.discards, d) })
	}
	for _, g := range plan.Git {
		p, err := s.in(g.Dir)
		note(p, err, func(p *place) { p.git = append(p.git, g) })
	}
	return failed
}

// guard returns the codebase of a file, and notes the file if it is protected. A file that
// belongs to no codebase, such as one in the user's home, is noted in the codebase where the
// agent works: switching the checks off there covers it, too.
func (s *sorter) guard(file string, placeOf func(string) (*place, error), find func(root string, checker *protect.Checker) (protect.Class, bool)) (*place, error) {
	p, err := placeOf(file)
	if err != nil {
		return nil, err
	}
	root := ""
	if p != nil {
		root = p.root
	} else if root, err = project.RootOf(filepath.Join(s.dir, lockkeeper.GitTarget), s.env); err != nil {
		return nil, err
	}
	checker, err := s.checker(root)
	if err != nil {
		return nil, err
	}
	class, is := find(root, checker)
	if !is {
		return p, nil
	}
	at := p
	if at == nil && root != "" {
		if at, err = s.in(s.dir); err != nil {
			return nil, err
		}
	}
	if at == nil {
		s.guarded = append(s.guarded, guarded{file, class})
	} else {
		at.guarded = append(at.guarded, guarded{file, class})
	}
	return p, nil
}

// isRootOrHome reports whether a directory is one of those in which settings are a small
// part: what is put into it, or brought back, is seldom about them.
func (s *sorter) isRootOrHome(root, dir string) bool {
	home, _ := s.env("HOME")
	dir = protect.Real(dir)
	return dir == root || home != "" && dir == protect.Real(home)
}

// visited adds the codebases in which a command may write without saying so: where it goes
// to, and what it spells anywhere. What cannot be looked at there is not written either.
func (s *sorter) visited(dirs []string, command string) error {
	for _, dir := range dirs {
		p, err := s.in(dir)
		if err != nil {
			return err
		}
		if p != nil {
			p.shell = true
		}
	}
	const most = 20_000 // words; the time of a hook is short
	seen := map[string]bool{}
	for _, word := range strings.FieldsFunc(command, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("'\"`;|&<>(){}$=,:", c) }) {
		for _, dir := range dirs {
			file := absolute(dir, word)
			if seen[file] || len(seen) > most {
				continue
			}
			seen[file] = true
			if slices.ContainsFunc(s.list, func(p *place) bool { return p.shell && isBelow(file, p.root) }) {
				continue
			}
			if _, err := os.Lstat(file); err != nil { // it may be there soon, where there is a directory for it
				if file = filepath.Dir(file); seen[file] {
					continue
				}
				seen[file] = true
				if _, err := os.Stat(file); err != nil {
					continue
				}
			}
			if p, err := s.in(file); err == nil && p != nil {
				p.shell = true
			}
		}
	}
	return nil
}
