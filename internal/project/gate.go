package project

import (
	"context"
	"path/filepath"
	"sync"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/protect"
	"lockkeeper/rescue"
)

// Recovery is what Open did about writes that a crash had left.
type Recovery struct {
	gate.Report
	Err error // they could not be brought to their end
}

// gateway is the gate of a codebase, opened when it is first needed. The lock manager
// recovers landings through it, so that a command that never writes can release a grant.
type gateway struct {
	app  *Project
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

// GateFor opens a second gate that writes one path, whatever the allowlist says. The caller
// closes it.
func (a *Project) GateFor(path string) (*gate.Gate, error) {
	opt := a.gateRules()
	opt.Allowed = []string{path}
	return a.gateway.openWith(opt)
}

func (w *gateway) openWith(opt gate.Options) (*gate.Gate, error) {
	name, err := process.Holder()
	if err != nil {
		return nil, err
	}
	a := w.app
	opt.Site, opt.Actor = w.host+":"+a.Root.Dir(), lockkeeper.Actor{Name: name, Kind: lockkeeper.ActorHolder}
	return gate.Open(a.Root, a.Store, a.Locks, opt)
}

// gateRules returns what the gate lets through, as it is configured. Protected files are
// not among it, whatever the allowlist says.
func (a *Project) gateRules() gate.Options {
	c := a.Config.Gate
	return gate.Options{Allowed: c.AllowedWritePaths, Protected: a.protected, GrantOptional: c.Grant == config.GrantOptional || a.Config.Run.Locking == "off", Keep: c.Keep, Limits: a.shelfLimits()}
}

// Protects reports whether agents never write a path, given from the root, and why.
func (a *Project) Protects(path string) (protect.Class, bool) {
	return a.protected.Checker().Below(path)
}

// Permits refuses a path that the gate never writes.
func (a *Project) Permits(path string) error { return gate.Permits(a.Root, a.gateRules(), path) }

// recoverLandings opens the gate, which recovers the landings of a grant.
func (w *gateway) recoverLandings(ctx context.Context, grantID string) error {
	g, err := w.open()
	if err != nil {
		return err
	}
	return g.RecoverLandings(ctx, grantID)
}

// recoverLeft brings to an end what crashes left, and drops what was kept for its
// time. That it fails is no reason not to open: most commands have nothing to do
// with it.
func (w *gateway) recoverLeft(ctx context.Context) *Recovery {
	if left, err := gate.MayNeedRecovery(w.app.Root.Dir(), w.app.Config.Gate.Keep); !left && err == nil {
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
func (a *Project) Unfinished(ctx context.Context) ([]*lockkeeper.Landing, error) {
	left, err := gate.MayNeedRecovery(a.Root.Dir(), a.Config.Gate.Keep)
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
func (a *Project) Gate() (*gate.Gate, error) { return a.gateway.open() }

// GrantOf is what the gate wants to see of a grant of this user; nil for none.
func (a *Project) GrantOf(id string) (*lockkeeper.Grant, error) {
	if id == "" {
		return nil, nil
	}
	token, err := a.Tokens.Get(id)
	return &lockkeeper.Grant{ID: id, Token: token}, err
}

// File is the one name, from the root, of a file as it was typed.
func (a *Project) File(path string) (string, error) { return a.FileAt(a.climb(path)) }

func (a *Project) FileAt(base, path string) (string, error) {
	l, err := a.Root.Resolve(base, path, lockkeeper.Write)
	if err == nil && l.Kind == lockkeeper.Dir {
		err = &lockkeeper.InputError{Field: "path", Value: path, Reason: "is a directory", Next: "name the files in it"}
	}
	return l.Path, err
}

// Shelf is where what could not land is kept. It can be looked at without the gate.
func (a *Project) Shelf() *rescue.Shelf {
	return rescue.Open(filepath.Join(a.Root.Dir(), DirName, "rescue"), a.shelfLimits())
}

func (a *Project) shelfLimits() rescue.Limits {
	return rescue.Limits{Entry: int64(a.Config.Gate.KeepFileMB) << 20, Total: int64(a.Config.Gate.KeepTotalMB) << 20}
}
