package hook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/config"
	"lockkeeper/internal/refusal"
	"lockkeeper/internal/session"
)

// check is one call on its way.
type check struct {
	call   Call
	agent  string
	world  World
	window *lockkeeper.Process
	tty    string
	out    *outcome
}

// place is a codebase, and what a call touches in it.
type place struct {
	root   string
	writes []Touch
	reads  []Touch
	trees  []string
	names  []string
	git    []GitAct
	shell  bool // a command runs there
}

func (k *check) run(ctx context.Context) error {
	places, err := k.places()
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := k.visit(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// places sorts what a call touches by codebase. A session's turns concern the one that the
// agent works in.
func (k *check) places() ([]*place, error) {
	c := k.call
	var list []*place
	at := func(file string) (*place, error) {
		root, err := app.RootOf(real(file), k.world.Env)
		if err != nil || root == "" {
			return nil, err
		}
		for _, p := range list {
			if p.root == root {
				return p, nil
			}
		}
		list = append(list, &place{root: root})
		return list[len(list)-1], nil
	}
	each := func(files []Touch, add func(*place, Touch)) error {
		for _, f := range files {
			f.File = absolute(c.Dir, f.File)
			p, err := at(f.File)
			if err != nil {
				return err
			}
			if p != nil {
				add(p, f)
			}
		}
		return nil
	}
	plan := Plan{Writes: c.Writes, Reads: c.Reads}
	if c.Command != "" {
		dir := c.Dir
		if c.ShellDir != "" {
			dir = absolute(c.Dir, c.ShellDir)
		}
		plan = planOf(c.Command, dir)
		k.call.Background = c.Background || plan.Background
		if plan.Reserved != "" && c.Event == Before {
			k.out.refused = append(k.out.refused, refusal.Reserved(plan.Reserved, "only a person may do it, at a terminal"))
		}
	}
	err := errors.Join(
		each(plan.Writes, func(p *place, t Touch) { p.writes = append(p.writes, t) }),
		each(plan.Reads, func(p *place, t Touch) { p.reads = append(p.reads, t) }),
		each(inside(plan.Trees), func(p *place, t Touch) { p.trees = append(p.trees, filepath.Dir(t.File)) }),
		each(touches(plan.Names), func(p *place, t Touch) { p.names = append(p.names, t.File) }))
	for _, g := range plan.Git {
		p, finding := at(filepath.Join(g.Dir, lockkeeper.GitTarget))
		if err = errors.Join(err, finding); p != nil {
			p.git = append(p.git, g)
		}
	}
	if c.Command != "" || c.Event != Before && c.Event != After {
		p, finding := at(filepath.Join(c.Dir, lockkeeper.GitTarget)) // any name in that directory
		if err = errors.Join(err, finding); p != nil {
			p.shell = c.Command != ""
		}
	}
	return list, err
}

// inside names something in each directory, for a directory may itself be a root.
func inside(dirs []string) (list []Touch) {
	for _, d := range dirs {
		list = append(list, Touch{File: filepath.Join(d, lockkeeper.GitTarget)})
	}
	return list
}

func touches(files []string) (list []Touch) {
	for _, f := range files {
		list = append(list, Touch{File: f})
	}
	return list
}

// real is the file that is written when one is: where a link leads.
func real(file string) string {
	if info, err := os.Lstat(file); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if to, err := filepath.EvalSymlinks(file); err == nil {
			return to
		}
	}
	return file
}

// visit does what a call asks for in one codebase.
func (k *check) visit(ctx context.Context, p *place) (err error) {
	a, err := app.Open(ctx, app.Settings{Dir: p.root, Store: k.world.Store, Env: k.world.Env, SkipRecovery: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	book := session.Open(a)
	if off, err := book.Off(ctx); err != nil || off != nil {
		if off != nil {
			k.out.Person = append(k.out.Person, fmt.Sprintf("LOCKKEEPER IS OFF until %s, by %s: writes are not checked. lockkeeper off --end switches it on.",
				off.Until.Local().Format("15:04:05"), off.By))
		}
		return err
	}
	s, err := book.Enter(ctx, session.Visitor{ID: k.call.Session, Agent: k.agent, About: k.call.Prompt, Process: k.window, TTY: k.tty})
	if err != nil {
		return err
	}
	v := &visit{check: k, place: p, app: a, book: book, seat: s}
	if k.call.Event == End {
		return s.Leave(ctx, k.call.Anew)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	switch k.call.Event {
	case Before:
		return v.before(ctx)
	case After:
		return v.after(ctx)
	case Stop:
		return v.stop(ctx)
	case Start, Prompt:
		return v.begin(ctx)
	}
	return nil
}

// visit is a call in one codebase.
type visit struct {
	*check
	place *place
	app   *app.App
	book  *session.Book
	seat  *session.Seat
}

func (v *visit) before(ctx context.Context) error {
	if err := v.disturbed(ctx); err != nil {
		return err
	}
	var list []session.Write
	for _, t := range v.place.writes {
		w, refused, err := v.target(t)
		switch {
		case err != nil:
			return err
		case refused != nil:
			v.refuse(*refused)
		case w.Path != "":
			list = append(list, w)
		}
	}
	if len(v.out.refused) > 0 {
		return nil
	}
	if err := v.looked(ctx); err != nil || len(v.out.refused) > 0 {
		return err
	}
	for _, g := range v.place.git {
		refused, err := v.seat.Rewrite(ctx, g.Name)
		if v.refuse(refused...); err != nil || len(refused) > 0 {
			return err
		}
	}
	if len(list) > 0 {
		refused, err := v.seat.Claim(ctx, list...)
		if isRefusal(err) {
			refused, err = []refusal.Refusal{refusal.Reserved(list[0].Path, err.Error())}, nil
		}
		if v.refuse(refused...); err != nil || len(refused) > 0 {
			return err
		}
		warnings, err := v.seat.Elsewhere(list)
		if v.out.Model = append(v.out.Model, warnings...); err != nil {
			return err
		}
	}
	if v.call.Command != "" || len(list) > 0 {
		return v.seat.Begin(v.call.ID, v.call.Command)
	}
	return nil
}

func (v *visit) refuse(list ...refusal.Refusal) { v.out.refused = append(v.out.refused, list...) }

// target is the one name of a file that is to be written, or why it may not be. Of a file
// in Lockkeeper's own directory, and of what configures it, only a person disposes.
func (v *visit) target(t Touch) (w session.Write, refused *refusal.Refusal, err error) {
	rel, err := filepath.Rel(v.place.root, real(t.File))
	if err != nil {
		return w, nil, err
	}
	no := func(why string) (session.Write, *refusal.Refusal, error) {
		r := refusal.Reserved(rel, why)
		return w, &r, nil
	}
	switch {
	case app.IsOwn(rel) || rel == config.FileName:
		return no("it is Lockkeeper's own; only a person changes it")
	case rel == lockkeeper.GitTarget || isBelow(rel, lockkeeper.GitTarget):
		return no("it is git's own; use git")
	case isHostSettings(rel, t.File):
		return no("it holds the hooks that check you; only a person changes them")
	}
	path, err := v.book.Path(t.File)
	if isRefusal(err) {
		if isDir(t.File) {
			v.place.trees = append(v.place.trees, t.File)
			return session.Write{}, nil, nil
		}
		return no(err.Error())
	}
	return session.Write{Path: path, Whole: t.Whole}, nil, err
}

func isBelow(rel, dir string) bool { return strings.HasPrefix(rel, dir+string(filepath.Separator)) }

// isHostSettings reports whether a file is one in which a host finds our hooks.
func isHostSettings(rel, file string) bool {
	at := filepath.ToSlash(rel)
	known := []string{".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json"}
	if !slices.ContainsFunc(known, func(name string) bool { return at == name || strings.HasSuffix(at, "/"+name) }) {
		return false
	}
	text, err := os.ReadFile(file)
	return err == nil && strings.Contains(string(text), "lockkeeper hook")
}

// looked refuses what a command would do to files that others hold, where the command only
// names them, or a directory above them.
func (v *visit) looked(ctx context.Context) error {
	for _, tree := range v.place.trees {
		if rel, err := filepath.Rel(v.place.root, tree); err == nil && (app.IsOwn(rel) || rel == lockkeeper.GitTarget || isBelow(rel, lockkeeper.GitTarget)) {
			v.refuse(refusal.Reserved(rel, "the locks or git stand on it; only a person removes it"))
		}
	}
	if len(v.out.refused) > 0 {
		return nil
	}
	refused, err := v.seat.Taken(ctx, v.place.trees, v.place.names)
	v.refuse(refused...)
	return err
}

// after notes what a call left, and compares what others hold.
func (v *visit) after(ctx context.Context) error {
	began := v.seat.End(v.call.ID, v.call.Background)
	for _, t := range v.place.reads {
		if path, err := v.book.Path(t.File); err == nil {
			if err := v.seat.Saw(path); err != nil {
				return err
			}
		}
	}
	var own []string
	for _, t := range v.place.writes {
		if path, err := v.book.Path(t.File); err == nil {
			own = append(own, path)
		}
	}
	if err := v.seat.Left(ctx, began, own); err != nil {
		return err
	}
	if len(v.place.git) > 0 {
		if err := v.seat.Rewritten(ctx); err != nil {
			return err
		}
	}
	if v.place.shell {
		if err := v.compare(ctx, began); err != nil {
			return err
		}
	}
	return v.news(ctx)
}
