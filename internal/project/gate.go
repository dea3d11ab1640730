package project

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/protect"
	"lockkeeper/rescue"
)

// A Recovery reports what Open did about landings that a crash left.
type Recovery struct {
	gate.Report
	Err error // why the landings could not be recovered
}

// A gateway opens the gate of a codebase when it is first needed. The lock manager
// recovers landings through it, so that a command that never writes can release a grant.
type gateway struct {
	app  *Project
	host string

	mu    sync.Mutex
	gate  *gate.Gate
	was   []*gate.Gate // gates with earlier allowlists; a landing may still use one
	rules gate.Options // options of the gate

	read    fs.FileInfo // the configuration file when it was read; nil: there was none
	allowed []string    // the allowlist when the file was read
}

// open returns the gate, with the allowlist as it is now.
func (w *gateway) open() (*gate.Gate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rules := w.app.gateRules()
	rules.Allowed = w.allowlist()
	if w.gate != nil && slices.Equal(rules.Allowed, w.rules.Allowed) {
		return w.gate, nil
	}
	g, err := w.openWith(rules)
	if err != nil {
		return nil, err
	}
	if w.gate != nil {
		w.was = append(w.was, w.gate)
	}
	w.gate, w.rules = g, rules
	return g, nil
}

// allowlist returns the allowlist of the configuration file, which a person may change while a
// server runs. If the file is invalid, its last valid version counts.
func (w *gateway) allowlist() []string {
	if w.allowed == nil {
		w.allowed = w.app.Config.Gate.AllowedWritePaths
	}
	file := filepath.Join(w.app.Root.Dir(), config.FileName)
	now, err := os.Stat(file)
	if err != nil {
		now = nil
	}
	was := w.read
	if w.read = now; was == nil && now == nil || was != nil && now != nil && os.SameFile(was, now) && was.ModTime().Equal(now.ModTime()) && was.Size() == now.Size() {
		return w.allowed
	}
	if c, err := config.Load(file, w.app.Env, nil); err == nil {
		w.allowed = c.Gate.AllowedWritePaths
	}
	return w.allowed
}

// GateFor opens a second gate that writes one path, also outside allowed_write_paths. The caller
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

// gateRules returns the configured options of the gate. It never writes protected files, even
// if they are in allowed_write_paths.
func (a *Project) gateRules() gate.Options {
	c := a.Config.Gate
	return gate.Options{Allowed: c.AllowedWritePaths, Protected: a.protected, GrantOptional: c.Grant == config.GrantOptional || a.Config.Run.Locking == "off", Keep: c.Keep, Limits: a.shelfLimits()}
}

// Protects reports whether agents never write a path, given from the root, and why.
func (a *Project) Protects(path string) (protect.Class, bool) {
	return a.protected.Checker().Below(path)
}

// Permits refuses a path that the gate never writes.
func (a *Project) Permits(path string) error {
	rules := a.gateRules()
	a.gateway.mu.Lock()
	rules.Allowed = a.gateway.allowlist()
	a.gateway.mu.Unlock()
	return gate.Permits(a.Root, rules, path)
}

// recoverLandings opens the gate, which recovers the landings of a grant.
func (w *gateway) recoverLandings(ctx context.Context, grantID string) error {
	g, err := w.open()
	if err != nil {
		return err
	}
	return g.RecoverLandings(ctx, grantID)
}

// recoverLeft recovers the landings that crashes left and removes expired originals. If it
// fails, the codebase is still opened, because most commands do not need it.
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
	var errs []error
	for _, g := range append(w.was, w.gate) {
		if g != nil {
			errs = append(errs, g.Close(context.Background()))
		}
	}
	return errors.Join(errs...)
}

// Gate returns the gate, which writes into the codebase. The first call opens it.
func (a *Project) Gate() (*gate.Gate, error) { return a.gateway.open() }

// GrantOf returns the id and token of a grant of this user for the gate, or nil for no grant.
func (a *Project) GrantOf(ctx context.Context, name string) (*lockkeeper.Grant, error) {
	if name == "" {
		return nil, nil
	}
	id, err := a.GrantID(ctx, name)
	if err != nil {
		return nil, err
	}
	token, err := a.Tokens.Get(id)
	return &lockkeeper.Grant{ID: id, Token: token}, err
}

// File returns the path from the root of the file that the user typed.
func (a *Project) File(path string) (string, error) { return a.FileAt(a.climb(path)) }

func (a *Project) FileAt(base, path string) (string, error) {
	l, err := a.Root.Resolve(base, path, lockkeeper.Write)
	if err == nil && l.Kind == lockkeeper.Dir {
		err = &lockkeeper.InputError{Field: "path", Value: path, Reason: "is a directory", Next: "name the files in it"}
	}
	return l.Path, err
}

// Shelf returns the shelf with the content that could not land. It opens the gate only to find the base of a change that it
// keeps.
func (a *Project) Shelf() *rescue.Shelf {
	return rescue.Open(filepath.Join(a.Root.Dir(), DirName, "rescue"), a.shelfLimits()).WithBases(a.original)
}

// original opens the content that a path had in a version; nil if it is not available.
func (a *Project) original(ctx context.Context, path string, v lockkeeper.Version) (io.ReadCloser, error) {
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	return g.Original(ctx, path, v)
}

func (a *Project) shelfLimits() rescue.Limits {
	return rescue.Limits{Entry: int64(a.Config.Gate.KeepFileMB) << 20, Total: int64(a.Config.Gate.KeepTotalMB) << 20}
}
