package app

import (
	"context"
	"sync"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/config"
	"lockkeeper/internal/process"
	"lockkeeper/internal/protect"
)

// Recovery is what Open did about writes that a crash had left.
type Recovery struct {
	gate.Report
	Err error // they could not be brought to their end
}

// gateway is the gate of a codebase, opened when it is first needed. Until then
// it stands in for the gate as the lock manager's settler, so that a grant can
// be released by a command that never writes.
type gateway struct {
	app  *App
	host string

	mu   sync.Mutex
	gate *gate.Gate
}

func (w *gateway) open() (*gate.Gate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate != nil {
		return w.gate, nil
	}
	g, err := w.openWith(w.app.gateRules())
	if err == nil {
		w.gate = g
	}
	return g, err
}

// openFor opens a gate of its own that lets one path through. The caller closes it.
func (w *gateway) openFor(path string) (*gate.Gate, error) {
	opt := w.app.gateRules()
	opt.Allowed = []string{path}
	return w.openWith(opt)
}

func (w *gateway) openWith(opt gate.Options) (*gate.Gate, error) {
	name, err := process.Holder()
	if err != nil {
		return nil, err
	}
	a := w.app
	opt.Site, opt.Actor = w.host+":"+a.Root.Dir(), lockkeeper.Actor{Name: name, Kind: lockkeeper.ActorHolder}
	return gate.Open(a.Root, a.store, a.Locks, opt)
}

// gateRules returns what the gate lets through, as it is configured. Protected files are
// not among it, whatever the allowlist says.
func (a *App) gateRules() gate.Options {
	c := a.Config.Gate
	return gate.Options{Allowed: c.AllowedWritePaths, Protected: a.protected, GrantOptional: c.Grant == config.GrantOptional || a.Config.Run.Locking == "off", Keep: c.Keep}
}

// Protects reports whether agents never write a path, given from the root, and why.
func (a *App) Protects(path string) (protect.Class, bool) { return a.protected.Look().Below(path) }

// Permits refuses a path that the gate never writes.
func (a *App) Permits(path string) error { return gate.Permits(a.Root, a.gateRules(), path) }

// Settle implements lock.Settler.
func (w *gateway) Settle(ctx context.Context, grantID string) error {
	g, err := w.open()
	if err != nil {
		return err
	}
	return g.Settle(ctx, grantID)
}

// recoverLeft brings to an end what crashes left, and drops what was kept for its
// time. That it fails is no reason not to open: most commands have nothing to do
// with it.
func (w *gateway) recoverLeft(ctx context.Context) *Recovery {
	if left, err := gate.HasLeft(w.app.Root.Dir(), w.app.Config.Gate.Keep); !left && err == nil {
		return nil
	}
	g, err := w.open()
	if err != nil {
		return &Recovery{Err: err}
	}
	r, err := g.Recover(ctx)
	return &Recovery{Report: r, Err: err}
}

// Unfinished returns the landings of this root that are neither done nor rolled back,
// and on which no process works. It opens no gate if nothing is left.
func (a *App) Unfinished(ctx context.Context) ([]*lockkeeper.Landing, error) {
	left, err := gate.HasLeft(a.Root.Dir(), a.Config.Gate.Keep)
	if err != nil || !left {
		return nil, err
	}
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	return g.Unfinished(ctx)
}

func (w *gateway) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate == nil {
		return nil
	}
	return w.gate.Close(context.Background())
}

// Gate is the one door through which the codebase is written, opened by the
// first who asks.
func (a *App) Gate() (*gate.Gate, error) { return a.gateway.open() }

// GrantOf is what the gate wants to see of a grant of this user; nil for none.
func (a *App) GrantOf(id string) (*lockkeeper.Grant, error) {
	if id == "" {
		return nil, nil
	}
	token, err := a.Tokens.Get(id)
	return &lockkeeper.Grant{ID: id, Token: token}, err
}

// File is the one name, from the root, of a file as it was typed.
func (a *App) File(path string) (string, error) { return a.fileAt(a.climb(path)) }

func (a *App) fileAt(base, path string) (string, error) {
	l, err := a.Root.Resolve(base, path, lockkeeper.Write)
	if err == nil && l.Kind == lockkeeper.Dir {
		err = &lockkeeper.InputError{Field: "path", Value: path, Reason: "a directory, and the gate writes files", Next: "name the files in it"}
	}
	return l.Path, err
}
