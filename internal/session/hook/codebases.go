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

// codebase is one codebase, with the files that a call touches in it.
type codebase struct {
	root     string
	place    *project.Place
	writes   []Touch
	reads    []Touch
	trees    []string
	names    []string
	guarded  []guarded // written files that are protected
	git      []GitAct
	index    []IndexAct
	beside   []string // written files in other work trees of the repository, which are no codebases with locks
	discards []Discard
	settings []Setting
	shell    bool // a command runs there or may write there
}

// sorter groups the files of a call by codebase.
type sorter struct {
	dir  string // the agent's working directory
	env  func(string) (string, bool)
	list []*codebase

	configuration func(root string) (*project.Configuration, error)

	guarded  []guarded // protected files, if the agent works outside every codebase
	checkers map[string]*protect.Checker
}

// guarded is a protected file, which agents may never write.
type guarded struct {
	file  string
	class protect.Class
}

// refusal returns the refusal to write the file, with the name to show.
func (g guarded) refusal(name string) refusal.Refusal {
	return refusal.Reserved(name, g.class.Reason(), g.class.Next())
}

// checker returns the checker for protected files of a codebase. An empty root means outside every codebase.
func (s *sorter) checker(root string) (*protect.Checker, error) {
	if known := s.checkers[root]; known != nil {
		return known, nil
	}
	list := protect.New(protect.Options{Env: s.env})
	if root != "" {
		c, err := s.configuration(root)
		if err != nil {
			return nil, err
		}
		list = c.Protection(s.env)
	}
	s.checkers[root] = list.Checker()
	return s.checkers[root], nil
}

// codebases groups the files of a call by codebase. Events other than tool calls concern the
// codebase in which the agent works.
func (k *check) codebases() ([]*codebase, error) {
	open, err := k.open()
	if err != nil {
		return nil, err
	}
	c := k.call
	s := &sorter{dir: c.Dir, env: k.proc.Env, checkers: map[string]*protect.Checker{}, configuration: k.configuration}
	if c.Act != "" {
		c.Writes = existing(c.Dir, c.Writes)
	}
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
	if c.Act != "" {
		return s.list, errors.Join(err, s.visited(slices.Concat(open, []string{c.Dir}), c.Act))
	}
	if c.Event != Before && c.Event != After {
		for _, dir := range append(open, c.Dir) {
			_, finding := s.in(dir)
			err = errors.Join(err, finding)
		}
	}
	return s.list, err
}

// open lists the codebases that a call concerns because of earlier calls. After a command, these
// are the codebases in which it began; at session events, those with state of the session. The
// working directory is not enough, because a command can change it and the host then reports the
// new one. A call that began elsewhere is read with the directory in which it began.
func (k *check) open() (roots []string, err error) {
	s := session.Traces{Env: k.proc.Env, Agent: k.agent, ID: k.call.Session}
	switch {
	case k.call.Event == Before || k.call.Event == After && k.call.Command+k.call.Act == "":
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

// spellings returns the absolute paths that the names of a tool may mean. A path with ".." after
// a link may mean two files, because some tools resolve the link first and others do not.
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

// at returns the codebase of a file, or nil.
func (s *sorter) at(file string) (*codebase, error) {
	place, err := project.Find(protect.Real(file), s.env)
	if err != nil || place == nil {
		return nil, err
	}
	for _, p := range s.list {
		if p.root == place.Root {
			return p, nil
		}
	}
	s.list = append(s.list, &codebase{root: place.Root, place: place})
	return s.list[len(s.list)-1], nil
}

// in returns the codebase of the files in a directory, which may itself be a root.
func (s *sorter) in(dir string) (*codebase, error) {
	return s.at(filepath.Join(dir, lockkeeper.GitTarget)) // the path stands for any name in the directory
}

// sort assigns the effects of a command to codebases.
func (s *sorter) sort(plan Effects) error {
	for _, t := range plan.Writes {
		p, err := s.guard(t.File, s.at, func(_ string, checker *protect.Checker) (protect.Class, bool) {
			if isDir(t.File) {
				return checker.File(t.File)
			}
			return checker.Tree(t.File) // a file in place of a directory hides the files below it
		})
		if err != nil {
			return err
		}
		if p != nil {
			p.writes = append(p.writes, t)
		} else if err := s.beside(t.File); err != nil {
			return err
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
	note := func(p *codebase, err error, do func(*codebase)) {
		if failed = errors.Join(failed, err); p != nil {
			do(p)
		}
	}
	for _, t := range plan.Reads {
		p, err := s.at(t.File)
		note(p, err, func(p *codebase) { p.reads = append(p.reads, t) })
	}
	for _, d := range plan.Discards {
		p, err := s.in(d.Dir)
		note(p, err, func(p *codebase) { p.discards = append(p.discards, d) })
	}
	for _, g := range plan.Git {
		p, err := s.in(g.Dir)
		note(p, err, func(p *codebase) { p.git = append(p.git, g) })
	}
	for _, x := range plan.Index {
		p, err := s.in(x.Dir)
		note(p, err, func(p *codebase) { p.index = append(p.index, x) })
	}
	for _, x := range plan.Settings {
		p, err := s.in(x.Dir)
		note(p, err, func(p *codebase) { p.settings = append(p.settings, x) })
	}
	return failed
}

// guard returns the codebase of a file, and notes the file if it is protected. A file outside
// every codebase, such as one in the user's home, is noted in the codebase where the agent
// works. So switching the checks off there also applies to it.
func (s *sorter) guard(file string, placeOf func(string) (*codebase, error), find func(root string, checker *protect.Checker) (protect.Class, bool)) (*codebase, error) {
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

// isRootOrHome reports whether a directory is the root or the user's home. Settings are only a
// small part of these, so a copy into them seldom concerns settings.
func (s *sorter) isRootOrHome(root, dir string) bool {
	home, _ := s.env("HOME")
	dir = protect.Real(dir)
	return dir == root || home != "" && dir == protect.Real(home)
}

// visited adds the codebases in which a command may write unnoticed: those of its directories,
// and those of any path in its text. It skips paths that cannot be read.
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
	const most = 20_000 // words; a hook has little time
	seen := map[string]bool{}
	for _, word := range strings.FieldsFunc(command, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("'\"`;|&<>(){}$=,:", c) }) {
		for _, dir := range dirs {
			file := absolute(dir, word)
			if seen[file] || len(seen) > most {
				continue
			}
			seen[file] = true
			if slices.ContainsFunc(s.list, func(p *codebase) bool { return p.shell && isBelow(file, p.root) }) {
				continue
			}
			if _, err := os.Lstat(file); err != nil { // the command may create the file if its directory exists
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
