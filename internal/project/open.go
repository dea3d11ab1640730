package project

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/protect"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
	"lockkeeper/tree"
)

// Settings say which codebase a command works on.
type Settings struct {
	Dir        string                      // the directory to work in, absolute
	Store      string                      // --store; empty: environment or file
	Deployment string                      // --deployment; empty: environment or file
	Roots      []string                    // --root of a worker; none: environment or file
	Env        func(string) (string, bool) // looks up a variable, as os.LookupEnv does

	Caller       func() Caller // who uses the tokens of grants; nil: a person
	SkipRecovery bool          // do not recover landings
	Wait         time.Duration // how long a store that cannot be reached for some time is tried again
	Brief        bool          // the process ends after one task, so it opens the store only once

	Clock         func() store.Moment // replaces the clock of an SQLite store, in tests
	Place         *Place              // the root, which Find has just found; nil: Open looks for it from Dir
	Configuration *Configuration      // the configuration that these settings give for this codebase; nil: Open reads it
}

func (s Settings) flags() map[string]string {
	given := map[string]string{"store": s.Store, "deployment": s.Deployment, "roots": strings.Join(s.Roots, ",")}
	maps.DeleteFunc(given, func(_, value string) bool { return value == "" })
	return given
}

// A Project is an open codebase.
type Project struct {
	Root   *tree.Root
	Space  string
	Config *config.Config
	Locks  *lock.Manager
	Host   *process.Host
	Tokens Tokens

	Recovery *Recovery // nil: there was nothing to recover

	WorkDir  string
	StateDir string                      // the user's own directory
	Env      func(string) (string, bool) // looks up a variable, as os.LookupEnv does
	Store    store.Store
	gateway  *gateway
	alive    *os.File

	protected *protect.List
}

// refusePassword refuses an address on the command line, which other users can see, if it has a password.
func refusePassword(store string) error {
	if !config.HasPassword(store) {
		return nil
	}
	return &lockkeeper.InputError{Field: "store", Value: config.Redact(store), Reason: "it carries a password, which other users see in the list of processes",
		Next: "leave the password out and put it into PGPASSFILE, or set LOCKKEEPER_STORE instead of --store"}
}

// Open finds the root and opens everything that belongs to it.
func Open(ctx context.Context, s Settings) (_ *Project, err error) {
	if err := refusePassword(s.Store); err != nil {
		return nil, err
	}
	base, root, marked, err := s.find()
	if err != nil {
		return nil, err
	}
	a := &Project{Space: marked.Space, WorkDir: base, Env: s.Env}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	configured := s.Configuration
	if configured == nil || configured.root != root {
		if configured, err = Configure(root, s); err != nil {
			return nil, err
		}
	}
	a.Config = configured.Config
	if err := a.Config.CheckDeployment(); err != nil {
		return nil, err
	}
	if err := agree(a.Config, marked); err != nil {
		return nil, err
	}
	if a.StateDir, err = StateDir(s.Env); err != nil {
		return nil, err
	}
	a.Tokens = Tokens{dir: filepath.Join(a.StateDir, "tokens", a.Space), caller: s.Caller}
	if err := a.enter(ctx, a.StateDir, root); err != nil {
		return nil, err
	}
	if a.Root, err = tree.Open(root); err != nil {
		return nil, err
	}
	a.protected = protection(a.Root.Dir(), a.Config, s.Env)
	if a.Host, err = process.NewHost(filepath.Join(root, DirName)); err != nil {
		return nil, err
	}
	err = store.Retry(ctx, s.Wait, func() (err error) {
		a.Store, err = openStore(ctx, a.Config.Store, root, a.Space, sqlstore.Options{Mark: a.alive, OneConnection: s.Brief, Clock: s.Clock})
		return err
	})
	if err != nil {
		return nil, err
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	a.gateway = &gateway{app: a, host: self.Host, read: configured.file}
	a.Locks = lock.New(a.Store, lock.Options{
		Policies: a.Config.Policies(), Processes: a.Host, Self: &self, RecoverLandings: a.gateway.recoverLandings,
		KeepFor: a.Config.Events.Retention, KeepEvents: a.Config.Events.MaxRows,
	})
	if !s.SkipRecovery {
		a.Recovery = a.gateway.recoverLeft(ctx)
	}
	return a, nil
}

// find returns the real directory of the settings, and the root that it is in.
func (s Settings) find() (base, root string, marked *marker, err error) {
	if s.Place != nil {
		return s.Place.Root, s.Place.Root, s.Place.marker, nil
	}
	if base, err = disk.RealDir(s.Dir); err != nil {
		return "", "", nil, err
	}
	root, marked, err = findRoot(base)
	if lockkeeper.CodeOf(err) == lockkeeper.CodeInput { // the directory is in no root
		err = lostRoot(s.Env, base, err)
	}
	if err == nil {
		err = refuseInner(root, s.Env)
	}
	return base, root, marked, err
}

// enter registers this process as a user of the root's lock world, if marker and witness agree.
func (a *Project) enter(ctx context.Context, state, root string) error {
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
	case storeName(seen.Store, root) != storeName(a.Config.Store, root):
		return &lockkeeper.StoreError{Store: config.Redact(a.Config.Store), Reason: "the locks of this root are kept in " + seen.Store + ", whose users would not see yours",
			Next: "leave --store and LOCKKEEPER_STORE as they were; if the database moved there, `lockkeeper init` with that address in lockkeeper.yaml; to start with new locks, stop every process that uses them and run `lockkeeper init --new-world`"}
	}
	return nil
}

// storeName returns the same text for all addresses of a store, whatever their user and options.
func storeName(st, root string) string {
	if !config.IsPostgres(st) {
		return storePath(st, root)
	}
	u, err := url.Parse(st)
	if err != nil {
		return st
	}
	return u.Hostname() + ":" + cmp.Or(u.Port(), "5432") + u.Path
}

// agree refuses a configuration that names another space than the marker, because the users of
// one space do not see the locks of the other.
func agree(c *config.Config, m *marker) error {
	if c.Space == "" || c.Space == m.Space || !config.IsPostgres(c.Store) {
		return nil
	}
	return &lockkeeper.InputError{Field: "space", Value: c.Space, Reason: config.FileName + " names it, and this root is space " + m.Space,
		Next: "restore the file; or, if no process works here, remove " + DirName + " and run `lockkeeper init`"}
}

func otherWorld(root string, seen *witness, space string) error {
	return &lockkeeper.StoreError{Store: root, Reason: "you have used the locks of space " + seen.Space + " here, and now the root says it is space " + space +
		": holders of the old locks would not be seen",
		Next: "restore " + DirName + "; if no process works here any more, `lockkeeper init --new-world`"}
}

// Close closes everything in the reverse order of opening. It may be called on a Project that is
// only partly open.
func (a *Project) Close() error {
	var errs []error
	if a.Locks != nil {
		// The lock manager closes before the gate, because its reaper recovers landings through the gate.
		errs = append(errs, a.Locks.Close())
	}
	if a.gateway != nil {
		errs = append(errs, a.gateway.close())
	}
	if a.Store != nil {
		errs = append(errs, a.Store.Close())
	}
	if a.Root != nil {
		errs = append(errs, a.Root.Close())
	}
	if a.alive != nil {
		errs = append(errs, a.alive.Close())
	}
	return errors.Join(errs...)
}

// storePath returns the absolute path of an SQLite file, which is relative to the root.
func storePath(st, root string) string {
	if filepath.IsAbs(st) {
		return filepath.Clean(st)
	}
	return filepath.Join(root, st)
}

// openStore opens the store of a space.
func openStore(ctx context.Context, st, root, space string, opt sqlstore.Options) (store.Store, error) {
	if config.IsPostgres(st) {
		s, err := sqlstore.OpenPostgres(ctx, st, space, sqlstore.Options{})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	if err := checkOwner(storePath(st, root)); err != nil {
		return nil, err
	}
	s, err := sqlstore.OpenSQLite(ctx, storePath(st, root), space, opt)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Resolve returns the lock for a path as the user typed it.
func (a *Project) Resolve(mode lockkeeper.Mode, path string) (lockkeeper.Lock, error) {
	base, path := a.climb(path)
	return a.Root.Resolve(base, path, mode)
}

// climb resolves leading .. of a path from the directory that the command runs in, as long as
// they stay in the root. That directory is a real path, so its parents are certain. Any other
// .. stays and is refused later.
func (a *Project) climb(path string) (base, rest string) {
	base, rest = a.WorkDir, path
	for rest == ".." || strings.HasPrefix(rest, "../") {
		if !strings.HasPrefix(base, a.Root.Dir()+"/") {
			return a.WorkDir, path
		}
		base, rest = filepath.Dir(base), cmp.Or(strings.TrimLeft(rest[2:], "/"), ".")
	}
	return base, rest
}

// FindRoot finds the codebase that the settings' directory is in, without opening it.
func FindRoot(s Settings) (string, error) {
	base, err := disk.RealDir(s.Dir)
	if err != nil {
		return "", err
	}
	root, _, err := findRoot(base)
	return root, err
}

// LoadConfig reads only the configuration, and opens nothing.
func LoadConfig(s Settings) (*config.Config, error) {
	root, err := FindRoot(s)
	if err != nil {
		return nil, err
	}
	return config.Load(filepath.Join(root, config.FileName), s.Env, s.flags())
}

// Dir returns the caller's working directory from the root, with slashes, for an item that runs
// there.
func (a *Project) Dir() (string, error) {
	dir, err := filepath.Rel(a.Root.Dir(), a.WorkDir)
	return filepath.ToSlash(dir), err
}
