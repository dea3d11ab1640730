package hook

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/protect"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/refusal"
)

// check is the state of one call while it is checked.
type check struct {
	call   Call
	input  []byte // the call as the host sent it
	agent  string
	proc   Process
	caller *lockkeeper.Process
	tty    string
	out    *outcome

	programs []string // source texts in other languages that the command contains
	opaque   bool     // whether it is unknown what the command does
	sweeps   []Sweep

	configurations map[string]*project.Configuration // by root, as far as they were read
}

// settings returns the settings of a codebase.
func (k *check) settings(root string) project.Settings {
	return project.Settings{Dir: root, Store: k.proc.Store, Env: k.proc.Env, SkipRecovery: true, Brief: true}
}

// configuration reads the configuration of a codebase once for each call.
func (k *check) configuration(root string) (*project.Configuration, error) {
	if c := k.configurations[root]; c != nil {
		return c, nil
	}
	c, err := project.Configure(root, k.settings(root))
	if err != nil {
		return nil, err
	}
	if k.configurations == nil {
		k.configurations = map[string]*project.Configuration{}
	}
	k.configurations[root] = c
	return c, nil
}

// run visits each codebase that the call concerns. Before a tool call, the first failure
// refuses the call. At other events, a failure in one codebase does not skip the others.
func (k *check) run(ctx context.Context) (failed error) {
	places, err := k.codebases()
	if err != nil {
		return err
	}
	if k.proc.Postgres != nil && k.usesPostgres(places) {
		return k.proc.Postgres(k.input)
	}
	for _, p := range places {
		model, person := len(k.out.Model), len(k.out.Person)
		err := k.visit(ctx, p)
		if dir := protect.Real(k.call.Dir); dir != p.root && !isBelow(dir, p.root) { // messages name paths from the root, so say which root
			for _, list := range [][]string{k.out.Model[model:], k.out.Person[person:]} {
				for i := range list {
					list[i] = "In " + p.root + ": " + list[i]
				}
			}
		}
		if failed = errors.Join(failed, err); failed != nil && k.call.Event == Before {
			break
		}
	}
	return failed
}

// visit handles the call in one codebase.
func (k *check) visit(ctx context.Context, p *codebase) (err error) {
	settings := k.settings(p.root)
	settings.Place, settings.Configuration = p.place, k.configurations[p.root]
	a, err := project.Open(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	registry := session.Open(a)
	if off, err := registry.Off(ctx); err != nil || off != nil {
		if off != nil {
			err = registry.Unprotect(ctx)
			k.out.Person = append(k.out.Person, fmt.Sprintf("LOCKKEEPER IS OFF until %s, by %s: writes are not checked. lockkeeper off --end switches it on.",
				off.Until.Local().Format("15:04:05"), off.By))
		}
		return err
	}
	caller := session.Caller{ID: k.call.Session, Agent: k.agent, About: k.call.Prompt, Process: k.caller, TTY: k.tty, Subagent: k.call.Subagent}
	s, err := registry.Enter(ctx, caller)
	if err != nil {
		return err
	}
	v := &visit{check: k, codebase: p, app: a, registry: registry, session: s}
	if k.call.Event != End { // End closes the session itself
		defer func() { err = errors.Join(err, s.Close()) }()
	}
	if k.call.Event == End || k.call.Event == SubagentEnd { // nobody is left to be told
		return events[k.call.Event].act(v, ctx)
	}
	begin := len(k.out.Model)
	k.out.Model = append(k.out.Model, s.Notices()...)
	err = events[k.call.Event].act(v, ctx)
	if list := slices.Clone(k.out.Model[begin:]); len(list) > 0 {
		for _, text := range list {
			s.Notify(k.call.Subagent.ID, text)
		}
		k.out.shown = append(k.out.shown, func() error { return registry.Shown(caller, list) })
	}
	return err
}

// A visit is a call in one codebase.
type visit struct {
	*check
	codebase *codebase
	app      *project.Project
	registry *session.Registry
	session  *session.Session
}

func (v *visit) endSubagent(context.Context) error {
	v.session.EndSubagent()
	return nil
}

func (v *visit) before(ctx context.Context) error {
	if err := v.disturbed(ctx, session.Call{}); err != nil {
		return err
	}
	for _, g := range v.codebase.guarded {
		v.refuse(g.refusal(v.name(g.file)))
	}
	for _, x := range v.codebase.settings {
		v.refuse(refusal.Reserved(x.Name, protect.Hooks.Reason(), "let a person set it"))
	}
	var list []session.Write
	for _, t := range v.codebase.writes {
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
	// The command may name files that others hold, or a directory above them, without writing to them directly.
	refused, err := v.session.Taken(ctx, v.codebase.trees, v.codebase.names)
	if v.refuse(refused...); err != nil || len(refused) > 0 {
		return err
	}
	if err := v.indexed(ctx); err != nil || len(v.out.refused) > 0 {
		return err
	}
	for _, g := range v.codebase.git {
		refused, err := v.session.Rewrite(ctx, g.rewriting())
		if v.refuse(refused...); err != nil || len(refused) > 0 {
			return err
		}
	}
	if len(list) > 0 {
		refused, err := v.session.Claim(ctx, list...)
		if isRefusal(err) {
			refused, err = []refusal.Refusal{refusal.Reserved(list[0].Path, err.Error())}, nil
		}
		if v.refuse(refused...); err != nil || len(refused) > 0 {
			return err
		}
		warnings, err := v.session.Elsewhere(list)
		if v.out.Model = append(v.out.Model, warnings...); err != nil {
			return err
		}
	}
	warnings, err := v.session.ElsewhereOutside(v.codebase.beside)
	if v.out.Model = append(v.out.Model, warnings...); err != nil {
		return err
	}
	if err := v.discarded(ctx); err != nil || len(v.out.refused) > 0 {
		return errors.Join(err, v.session.EndRewrite(ctx))
	}
	var paths []string
	for _, w := range list {
		paths = append(paths, w.Path)
	}
	if err := v.session.Writable(ctx, v.call.Command+v.call.Act != "", paths...); err != nil {
		return errors.Join(err, v.session.EndRewrite(ctx))
	}
	kept, err := v.keep(ctx)
	if err != nil || len(v.out.refused) > 0 {
		return errors.Join(err, v.session.EndRewrite(ctx))
	}
	if v.call.Command+v.call.Act != "" || len(list) > 0 {
		c := session.Call{Dir: v.call.Dir, Command: v.call.Command + v.call.Act, Programs: v.programs, Writes: paths, Snapshot: kept}
		if v.opaque {
			c.Head = v.registry.Head(ctx)
		}
		if len(list) > 0 {
			v.session.Watch(ctx)
		}
		if c.Command != "" {
			c.Guarded = project.Configured(v.codebase.root)
		}
		return v.session.Begin(v.call.ID, c)
	}
	return nil
}

func (v *visit) refuse(list ...refusal.Refusal) { v.out.refused = append(v.out.refused, list...) }

// name returns the path of a file for messages: relative to the root if the file is below it.
func (v *visit) name(file string) string {
	if rel, err := filepath.Rel(v.codebase.root, protect.Real(file)); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

// target returns the path of a file that a call writes, or a refusal.
func (v *visit) target(t Touch) (w session.Write, refused *refusal.Refusal, err error) {
	name := v.name(t.File)
	no := func(why string) (session.Write, *refusal.Refusal, error) {
		r := refusal.Reserved(name, why)
		return w, &r, nil
	}
	path, err := v.registry.Path(t.File)
	if isRefusal(err) {
		if isDir(t.File) {
			v.codebase.trees = append(v.codebase.trees, t.File)
			return session.Write{}, nil, nil
		}
		return no(err.Error())
	}
	return session.Write{Path: path, Whole: t.Whole}, nil, err
}

func isBelow(rel, dir string) bool { return strings.HasPrefix(rel, dir+string(filepath.Separator)) }

// after records the effects of a finished call and compares the files that others hold.
func (v *visit) after(ctx context.Context) error {
	began := v.session.End(v.call.ID, v.call.Background)
	var own []string
	for _, t := range v.codebase.writes {
		if path, err := v.registry.Path(t.File); err == nil {
			own = append(own, path)
		}
	}
	v.unguarded(began)
	if err := v.session.Left(ctx, began, own); err != nil {
		return err
	}
	if v.codebase.shell || len(v.codebase.reads) > 0 { // later reads by the agent include the changes of others
		if err := v.disturbed(ctx, began); err != nil {
			return err
		}
	}
	for _, t := range v.codebase.reads {
		path, err := v.registry.Path(t.File)
		if err != nil {
			continue // a session cannot write this path
		}
		if err := v.session.Saw(ctx, path, func(content []byte) bool { return v.call.showed(t, content) }); err != nil {
			return err
		}
	}
	if len(v.codebase.git) > 0 {
		if err := v.session.EndRewrite(ctx); err != nil {
			return err
		}
	}
	if v.codebase.shell {
		if err := errors.Join(v.compare(ctx, began), v.committed(ctx, began), v.lost(ctx)); err != nil {
			return err
		}
	}
	if err := v.session.Protect(ctx); err != nil {
		return err
	}
	return v.news(ctx)
}
