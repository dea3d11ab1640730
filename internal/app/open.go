package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/config"
	"lockkeeper/internal/process"
	"lockkeeper/internal/protect"
	"lockkeeper/lock"
	"lockkeeper/store/sqlstore"
	"lockkeeper/tree"
)

// Settings is what a command was told about where to work.
type Settings struct {
	Dir        string                      // the directory to work in, absolute
	Store      string                      // --store; empty: environment or file
	Deployment string                      // --deployment; empty: environment or file
	Roots      []string                    // --root of a worker; none: environment or file
	Env        func(string) (string, bool) // as os.LookupEnv

	Caller       func() Caller // who uses the tokens of grants; nil: a person, or who speaks for sessions of its own
	SkipRecovery bool          // do not look for what crashes left
}

func (s Settings) flags() map[string]string {
	given := map[string]string{"store": s.Store, "deployment": s.Deployment, "roots": strings.Join(s.Roots, ",")}
	maps.DeleteFunc(given, func(_, value string) bool { return value == "" })
	return given
}

// App is one open codebase.
type App struct {
	Root   *tree.Root
	Space  string
	Config *config.Config
	Locks  *lock.Manager
	Host   *process.Host
	Tokens Tokens

	Recovery *Recovery // nil: no crash had left anything

	base    string
	state   string                      // the user's own directory
	env     func(string) (string, bool) // as os.LookupEnv
	store   lockkeeper.Store
	gateway *gateway
	alive   *os.File

	protected *protect.List
}

// Open finds the root and opens everything that belongs to it.
func Open(ctx context.Context, s Settings) (_ *App, err error) {
	base, err := realDir(s.Dir)
	if err != nil {
		return nil, err
	}
	root, marked, err := findRoot(base)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeInput { // there is none
		err = lostRoot(s.Env, base, err)
	}
	if err == nil {
		err = refuseInner(root, s.Env)
	}
	if err != nil {
		return nil, err
	}
	a := &App{Space: marked.Space, base: base, env: s.Env}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if a.Config, err = config.Load(filepath.Join(root, config.FileName), s.Env, s.flags()); err != nil {
		return nil, err
	}
	if err := a.Config.CheckDeployment(); err != nil {
		return nil, err
	}
	if err := agree(a.Config, marked); err != nil {
		return nil, err
	}
	state, err := stateDir(s.Env)
	if err != nil {
		return nil, err
	}
	a.state = state
	a.Tokens = Tokens{dir: filepath.Join(state, "tokens", a.Space), caller: s.Caller}
	if err := a.enter(ctx, state, root); err != nil {
		return nil, err
	}
	if a.Root, err = tree.Open(root); err != nil {
		return nil, err
	}
	a.protected = protection(a.Root.Dir(), a.Config, s.Env)
	if a.Host, err = process.NewHost(filepath.Join(root, dirName)); err != nil {
		return nil, err
	}
	if a.store, err = openStore(ctx, a.Config.Store, root, a.Space, a.alive); err != nil {
		return nil, err
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	a.Locks = lock.New(a.store, lock.Options{
		Policies: a.Config.Policies(), Processes: a.Host, Self: &self,
		KeepFor: a.Config.Events.Retention, KeepEvents: a.Config.Events.MaxRows,
	})
	a.gateway = &gateway{app: a, host: self.Host}
	a.Locks.SettleWith(a.gateway)
	if !s.SkipRecovery {
		a.Recovery = a.gateway.recoverLeft(ctx)
	}
	return a, nil
}

// enter joins the users of the root's world, once marker and witness agree.
func (a *App) enter(ctx context.Context, state, root string) error {
	w := worldOf(state, root)
	alive, err := w.enter()
	if err != nil {
		return err
	}
	a.alive = alive
	seen, err := w.recall()
	if err == nil && seen == nil {
		seen, err = recallElsewhere(state, root, a.Space)
	}
	switch {
	case err != nil:
		return err
	case seen == nil && config.IsPostgres(a.Config.Store) && strings.HasPrefix(a.Config.Source("store"), config.FileName):
		return &lockkeeper.RefusedError{Act: "connecting to " + config.Redact(a.Config.Store),
			Reason: config.FileName + " names that server, and you have not used it here: a repository from elsewhere must not choose whom you send your password to",
			Next:   "if you know it, `lockkeeper init`"}
	case seen == nil:
		return w.remember(ctx, a.Space, config.Redact(a.Config.Store))
	case seen.Space != a.Space:
		return otherWorld(root, seen, a.Space)
	case !sameStore(seen.Store, a.Config.Store, root):
		return &lockkeeper.StoreError{Store: config.Redact(a.Config.Store), Reason: "the locks of this root are kept in " + seen.Store + ", whose users would not see yours",
			Next: "leave --store and LOCKKEEPER_STORE as they were; to move the locks, stop everybody and run `lockkeeper init --new-world`"}
	}
	return nil
}

// sameStore reports whether two ways to write a store mean the same one, whoever
// connects to it and how.
func sameStore(a, b, root string) bool { return storeName(a, root) == storeName(b, root) }

func storeName(store, root string) string {
	if !config.IsPostgres(store) {
		return storePath(store, root)
	}
	u, err := url.Parse(store)
	if err != nil {
		return store
	}
	port := u.Port()
	if port == "" {
		port = "5432"
	}
	return u.Hostname() + ":" + port + u.Path
}

// agree refuses a configuration that names another space than the marker: those
// who follow the one would not see the locks of those who follow the other.
func agree(c *config.Config, m *marker) error {
	if c.Space == "" || c.Space == m.Space || !config.IsPostgres(c.Store) {
		return nil
	}
	return &lockkeeper.InputError{Field: "space", Value: c.Space, Reason: config.FileName + " names it, and this root is space " + m.Space,
		Next: "put the file back; or, when nobody works here, remove " + dirName + " and run `lockkeeper init`"}
}

func otherWorld(root string, seen *witness, space string) error {
	return &lockkeeper.StoreError{Store: root, Reason: "you have used the locks of space " + seen.Space + " here, and now the root says it is space " + space +
		": whoever still works under the old locks is not seen",
		Next: "put " + dirName + " back as it was; if nobody works here any more, `lockkeeper init --new-world`"}
}

// Close gives everything back, in the reverse order of opening. It may be
// called on an App that is only partly open.
func (a *App) Close() error {
	var errs []error
	if a.Locks != nil {
		// Before the gate, through which its reaper settles. What the gate still has
		// to mark needs nothing that ends here.
		errs = append(errs, a.Locks.Close())
	}
	if a.gateway != nil {
		errs = append(errs, a.gateway.close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	if a.Root != nil {
		errs = append(errs, a.Root.Close())
	}
	if a.alive != nil {
		errs = append(errs, a.alive.Close())
	}
	return errors.Join(errs...)
}

// storePath makes the path of an SQLite file absolute: it is relative to the
// root.
func storePath(store, root string) string {
	if filepath.IsAbs(store) {
		return filepath.Clean(store)
	}
	return filepath.Join(root, store)
}

// openStore opens the store of a space; mark is where an SQLite store remembers
// the last number outside of the tree.
func openStore(ctx context.Context, store, root, space string, mark *os.File) (lockkeeper.Store, error) {
	if config.IsPostgres(store) {
		s, err := sqlstore.OpenPostgres(ctx, store, space, sqlstore.Options{})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	if err := checkOwner(storePath(store, root)); err != nil {
		return nil, err
	}
	s, err := sqlstore.OpenSQLite(ctx, storePath(store, root), space, sqlstore.Options{Mark: mark})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Resolve makes the lock for a path as it was typed.
func (a *App) Resolve(mode lockkeeper.Mode, path string) (lockkeeper.Lock, error) {
	base, path := a.climb(path)
	return a.Root.Resolve(base, path, mode)
}

// climb takes the .. at the beginning of a path for the directories above the one that the
// command runs in, as long as they are in the root. That one is a real path, so it is sure
// which they are; a .. further on, or out of the root, stays and is refused.
func (a *App) climb(path string) (base, rest string) {
	base, rest = a.base, path
	for rest == ".." || strings.HasPrefix(rest, "../") {
		if !strings.HasPrefix(base, a.Root.Dir()+"/") {
			return a.base, path
		}
		base, rest = filepath.Dir(base), cmp.Or(strings.TrimLeft(rest[2:], "/"), ".")
	}
	return base, rest
}

// LoadConfig reads the configuration alone, for showing it.
func LoadConfig(s Settings) (*config.Config, error) {
	base, err := realDir(s.Dir)
	if err != nil {
		return nil, err
	}
	root, _, err := findRoot(base)
	if err != nil {
		return nil, err
	}
	return config.Load(filepath.Join(root, config.FileName), s.Env, s.flags())
}
