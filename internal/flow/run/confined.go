package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent/owndir"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/supervisor"
	"lockkeeper/internal/agent/toolcache"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/machine/process"
)

// A site is where a command of a run works.
type site struct {
	w     *workspace.Workspace
	agent string           // whose reach the command has; empty: that of test and CI commands
	asks  question         // what the agent answers; empty for a test or CI command
	fills *toolcache.Layer // keeps what a trusted command adds to the caches of tools; nil: it is discarded
}

// A prepared is a place in which a command of a run can start at once. As far as this machine can, the
// command sees only its workspace, the system, and the reach of its agent. The command can send
// requests to a supervisor.
type prepared struct {
	p       *Pipeline
	t       execution
	named   sandbox.Confinement
	environ func(env []string) []string
	closers []func() error
}

// prepare makes everything that a command needs beside its slot. The caller closes it.
func (p *Pipeline) prepare(ctx context.Context, t execution, at site) (_ *prepared, err error) {
	r := &prepared{p: p, t: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	temp, err := makeTemp(at.w)
	if err != nil {
		return nil, err
	}
	r.atClose(func() error { return workspace.Remove(context.WithoutCancel(ctx), temp) })
	private, err := os.MkdirTemp(at.w.Home(), "private")
	if err != nil {
		return nil, err
	}
	r.atClose(func() error { return workspace.Remove(context.WithoutCancel(ctx), private) })
	served, err := p.serveRequests(ctx, t, at.asks, temp)
	if err != nil {
		return nil, err
	}
	r.atClose(served.end)
	reach := p.reachOf(at.agent)
	var own *owndir.Copy
	if reach.Own != nil {
		own, err = reach.Own.Open(ctx, filepath.Join(private, "own"), func(err error) {
			p.tell(News{Kind: NewsWarning, Item: t.ID(), Text: err.Error()})
		})
		if err != nil {
			return nil, err
		}
		r.atClose(func() error { return own.Close(ctx) })
		reach.Write, reach.Read = append(slices.Clip(reach.Write), own.Write), append(slices.Clip(reach.Read), own.Read...)
	}
	r.environ = func(env []string) []string {
		env = append(sandbox.Environ(env, temp, reach.Keep...), served.env...)
		if own != nil {
			env = own.Environ(env)
		}
		return env
	}
	if r.named, err = p.confinement(ctx, at.w, reach, temp, private); err != nil {
		return nil, err
	}
	if at.agent == "" {
		dir, place, err := testedAt(at.w)
		if err != nil {
			return nil, err
		}
		r.named.Places = map[string]string{dir: place}
	}
	caches := at.fills.Layers()
	if caches == nil {
		if caches, err = p.opt.Caches.Open(); err != nil {
			return nil, err
		}
		r.atClose(caches.Close)
	}
	r.named.Scratch, err = layered(reach.Scratch, caches, at.fills)
	return r, err
}

func (r *prepared) atClose(fn func() error) { r.closers = append(r.closers, fn) }

func (r *prepared) close() (err error) {
	for _, fn := range slices.Backward(r.closers) {
		err = errors.Join(err, fn())
	}
	r.closers = nil
	return err
}

// run runs a command and returns when all its processes have ended.
func (r *prepared) run(ctx context.Context, c process.Command) (code int, err error) {
	p, t := r.p, r.t
	c.Env = r.environ(c.Env)
	if c.Argv, err = sandbox.Wrap(p.opt.Sandbox, r.named, c.Argv); err != nil {
		return -1, err
	}
	c.Grant = t.Mark()
	var group lockkeeper.Process
	c.Started = func(self lockkeeper.Process) error {
		group = self
		return t.Started(ctx, self)
	}
	code, err = p.opt.Host.Run(ctx, c)
	if left, ok := errors.AsType[*process.LeftoversError](err); ok { // the grant must not be released while processes of the command run
		p.tell(News{Kind: NewsWarning, Item: t.ID(), Text: left.Error()})
		if ended := p.opt.Host.EndWork(context.WithoutCancel(ctx), group, t.Mark()); ended != nil {
			return code, errors.Join(err, ended)
		}
	}
	return code, err
}

// longestTemp is the longest name of a directory for sockets: the kernel permits 107 bytes for
// the path of a socket, and the part below this directory needs 29.
const longestTemp = 107 - 29

// makeTemp creates a directory for a command's temporary files and its socket, in the home of
// the workspace if the name is short enough.
func makeTemp(w *workspace.Workspace) (string, error) {
	return os.MkdirTemp(tempParent(w.Home(), os.TempDir()), "lk")
}

func tempParent(dirs ...string) string {
	for _, dir := range dirs {
		if len(dir) <= longestTemp {
			return dir
		}
	}
	return "/tmp"
}

// existing returns the paths that exist, with links resolved.
func existing(paths []string) (list []string, err error) {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, real)
	}
	return list, nil
}

// A served is a supervisor that answers the requests of one command.
type served struct {
	env  []string
	stop context.CancelFunc
	done sync.WaitGroup
	err  error
}

func (p *Pipeline) serveRequests(ctx context.Context, t execution, q question, dir string) (*served, error) {
	var handler supervisor.Handler = &agentRequests{p: p, t: t, q: q}
	if g, ok := t.(*guest); ok {
		handler = g.requests()
	}
	server, err := supervisor.Listen(dir, handler)
	if err != nil {
		return nil, err
	}
	s := &served{env: server.Environ()}
	ctx, s.stop = context.WithCancel(ctx)
	s.done.Go(func() { s.err = server.Serve(ctx) })
	return s, nil
}

func (s *served) end() error {
	s.stop()
	s.done.Wait()
	return s.err
}

// agentRequests answers the requests of tools in a workspace. No request extends a grant.
type agentRequests struct {
	p *Pipeline
	t execution
	q question
}

// Grant implements supervisor.Handler. It leaves out the documents of the flow. The item locks
// them too, but they are not in the workspace and no agent may write them.
func (d *agentRequests) Grant(context.Context) (supervisor.GrantView, error) {
	g := d.t.Grant()
	if g == nil {
		return supervisor.GrantView{Holder: d.t.ID()}, nil
	}
	view := supervisor.GrantView{ID: g.ID, Holder: g.Holder}
	for _, l := range g.Locks {
		own := func(dir string) bool { return dir == l.Path || lockkeeper.IsAncestor(dir, l.Path) }
		switch {
		case slices.ContainsFunc(d.p.opt.Own, own):
		case l.Mode == lockkeeper.Write:
			view.Write = append(view.Write, l.Path)
		default:
			view.Read = append(view.Read, l.Path)
		}
	}
	return view, nil
}

func (d *agentRequests) Gap(ctx context.Context, path, reason string) error {
	if d.p.opt.Gate == nil {
		return errors.New("this is a trial of the tests, which changes nothing")
	}
	d.p.tell(News{Kind: NewsGap, Item: d.t.ID(), Text: path + ": the agent asked for this file: " + reason})
	answered, err := d.p.answeredGaps(ctx, d.q)
	if err != nil {
		return err
	}
	e, err := d.p.opt.Gate.Refuse(ctx, d.t.Grant(), gate.Change{Path: path}, fmt.Errorf("the agent asked for this file: %s", reason), answered...)
	if err != nil {
		return err
	}
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.p.requested[d.t.ID()] = append(d.p.requested[d.t.ID()], flow.Gap{Path: path, Reason: "the agent asked for this file: " + reason, Rescue: e.ID, At: time.Now().UTC()})
	return nil
}

// requestedBy returns the files that the agent requested since the last call.
func (p *Pipeline) requestedBy(t execution, q question) []flow.Gap {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.requested[t.ID()]
	delete(p.requested, t.ID())
	for i := range list {
		list[i].Phase, list[i].Planned = q.phase, p.plannedBy(q)
	}
	return list
}

// A Reach lists the files and variables that commands of a run may use in addition to their
// workspace and the system's directories. Paths are absolute. Missing paths are ignored.
type Reach struct {
	Write   []string // paths that the command may change
	Read    []string
	Scratch []sandbox.Scratch // caches of tools, also missing ones, without layers; changes are discarded
	Keep    []string          // variables that are passed on although they contain a credential
	Home    map[string]string // the only files of the home directory
	Own     *owndir.Dir       // the agent's own directory; each call gets a copy; nil: none
}

// reachOf returns the reach of an agent. The name "" is for test and CI commands.
func (p *Pipeline) reachOf(agent string) Reach {
	if p.opt.Reach == nil {
		return Reach{}
	}
	return p.opt.Reach(agent)
}

// confinement returns the files that a command in a workspace may use. The command's private
// directories are in private, which the caller removes.
func (p *Pipeline) confinement(ctx context.Context, w *workspace.Workspace, r Reach, temp, private string) (c sandbox.Confinement, err error) {
	outside, err := w.Outside(ctx)
	if err != nil {
		return c, err
	}
	c = sandbox.Confinement{Private: private}
	if err := treeOf(w, &c); err != nil {
		return c, err
	}
	for list, paths := range map[*[]string][]string{&c.Write: append(append(c.Write, temp), r.Write...), &c.Read: append(outside, r.Read...)} {
		if *list, err = existing(paths); err != nil {
			return c, err
		}
	}
	for name, text := range r.Home {
		file := filepath.Join(private, "home", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return c, err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return c, err
		}
	}
	return c, nil
}
