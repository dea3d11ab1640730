package project

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/project/config"
	"lockkeeper/store/sqlstore"
)

// InitOptions says how Init makes a root.
type InitOptions struct {
	File     string // the text of lockkeeper.yaml if there is none; empty: the sample
	Space    string // join this space instead of making a new one
	Restored bool   // accept a database that was copied or restored
	NewWorld bool   // make a new lock world although there was another one

	// Confirm asks a person, with the facts about the old lock world, whether to give it up.
	// An error refuses. It is called at most once, while no process uses the old world.
	Confirm func(act, facts string) error
}

// An InitResult says what Init did.
type InitResult struct {
	Root    string   `json:"root"`
	Space   string   `json:"space"`
	Store   string   `json:"store"`
	Already bool     `json:"already"` // the directory was a root before
	Made    []string `json:"made"`

	NextMachine string   `json:"next_machine,omitempty"`        // the command that joins the space from another machine
	Allowed     []string `json:"allowed_write_paths,omitempty"` // allowed_write_paths, if none of them exists
}

// Init makes the settings' directory the root of a space. It does not change a complete root.
func Init(ctx context.Context, s Settings, opt InitOptions) (*InitResult, error) {
	root, err := disk.RealDir(s.Dir)
	if err != nil {
		return nil, err
	}
	if opt.Space != "" && !isUUID(opt.Space) {
		return nil, &lockkeeper.InputError{Field: "space", Value: opt.Space, Reason: "not the id of a space", Next: "copy it from " + DirName + "/" + markerName + " of the root to join"}
	}
	if err := refuseNested(root); err != nil {
		return nil, err
	}
	state, err := StateDir(s.Env)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(filepath.Join(root, config.FileName), s.Env, s.flags())
	if err != nil {
		return nil, err
	}
	if config.HasPassword(s.Store) {
		return nil, &lockkeeper.InputError{Field: "store", Value: config.Redact(s.Store), Reason: "it carries a password, which is not written into " + config.FileName,
			Next: "leave the password out and put it into PGPASSFILE, or set LOCKKEEPER_STORE instead of --store"}
	}
	file, err := planConfig(filepath.Join(root, config.FileName), s, cfg, opt)
	if err != nil {
		return nil, err
	}
	if marked, err := readMarker(root); err != nil {
		return nil, err
	} else if marked == nil {
		file.declareLayout(root)
	}
	space := opt.Space
	if space == "" && config.IsPostgres(cfg.Store) {
		space = cfg.Space
	}
	i := &initializer{root: root, file: file, space: space, opt: opt, config: cfg, world: worldOf(state, root),
		result: &InitResult{Root: root, Store: config.Redact(cfg.Store), Made: []string{}}}
	return i.result, i.run(ctx)
}

// refuseNested refuses a root inside of another root, so that one file has one lock world.
func refuseNested(root string) error {
	above := filepath.Dir(root)
	if above == root {
		return nil
	}
	outer, _, err := findRoot(above)
	if err != nil {
		if lockkeeper.CodeOf(err) == lockkeeper.CodeInput {
			return nil // no directory above is a root
		}
		return err
	}
	return &lockkeeper.InputError{Field: "directory", Value: root, Reason: "it lies inside the root " + outer + ", whose locks already cover it",
		Next: "work with that root; its paths may be given relative to where you are"}
}

// An initializer is one Init in progress.
type initializer struct {
	root   string
	opt    InitOptions
	config *config.Config
	file   *plan
	space  string // space to join; empty: make a new one
	world  world
	alive  *os.File // locked while init is alone
	result *InitResult
}

func (i *initializer) run(ctx context.Context) error {
	marked, err := readMarker(i.root)
	if err != nil {
		return err
	}
	seen, err := i.world.recall()
	if err != nil {
		return err
	}
	if marked != nil && !i.opt.Restored && (seen == nil || seen.Space == marked.Space) && !i.moved(seen) {
		if err := i.verify(ctx, marked); err == nil || !i.opt.NewWorld {
			return err
		}
	}
	alive, err := i.world.lockAlone()
	if err != nil {
		return i.inUse(err, seen)
	}
	defer alive.Close()
	i.alive = alive
	// Another init may have been faster.
	if marked, err = readMarker(i.root); err != nil {
		return err
	}
	if seen, err = i.world.recall(); err != nil {
		return err
	}
	return i.alone(ctx, marked, seen)
}

// alone runs the part of init during which no other process of this user uses the world.
func (i *initializer) alone(ctx context.Context, marked *marker, seen *witness) error {
	if seen != nil && (marked != nil && marked.Space != seen.Space || marked == nil && i.space != seen.Space) {
		if err := i.endWorld(seen, marked); err != nil { // joining the same space makes no second world
			return err
		}
	}
	switch {
	case marked != nil && i.opt.Restored:
		return i.restore(ctx, marked)
	case marked != nil && i.moved(seen):
		return i.follow(ctx, marked, seen)
	case marked != nil:
		err := i.verify(ctx, marked)
		if err == nil || !i.opt.NewWorld || seen == nil {
			return err
		}
		if err := i.endWorld(seen, nil); err != nil {
			return err
		}
		if err := i.moveAside(); err != nil {
			return err
		}
		return i.make(ctx)
	case i.space != "" && !config.IsPostgres(i.config.Store):
		return i.join(ctx)
	}
	return i.make(ctx)
}

// moveAside renames a lock database that cannot be used.
func (i *initializer) moveAside() error {
	old := DirName + ".old-" + time.Now().UTC().Format("20060102T150405.000")
	if err := os.Rename(filepath.Join(i.root, DirName), filepath.Join(i.root, old)); err != nil {
		return i.unwritable(err)
	}
	i.result.Made = append(i.result.Made, old+"/ from what was left")
	return nil
}

// inUse returns the error for a world that other processes use.
func (i *initializer) inUse(err error, seen *witness) error {
	var busy *inUseError
	if !errors.As(err, &busy) {
		return err
	}
	if seen == nil {
		return &lockkeeper.RefusedError{Act: "init", Reason: busy.Error(), Next: "try again when they are done"}
	}
	return &lockkeeper.RefusedError{Act: "init", Reason: fmt.Sprintf("the locks of space %s were here, and %s; a new lock database would not contain their locks", seen.Space, busy),
		Next: "stop these processes, then repeat the command"}
}

// endWorld asks a person to confirm that the old world can be given up.
func (i *initializer) endWorld(seen *witness, marked *marker) error {
	gone := error(goneWorld(i.root, seen))
	if marked != nil {
		gone = otherWorld(i.root, seen, marked.Space)
	}
	if !i.opt.NewWorld || i.opt.Confirm == nil {
		return gone
	}
	return i.opt.Confirm("init --new-world", fmt.Sprintf("%s had the locks of space %s, kept in %s. They are gone, and no process of yours uses them now.\n"+
		"Other users or machines that still work here will not see the new locks.", i.root, seen.Space, seen.Store))
}

// verify checks that an existing root can be used, and does not change it.
func (i *initializer) verify(ctx context.Context, marked *marker) error {
	if i.opt.Space != "" && i.opt.Space != marked.Space {
		return &lockkeeper.InputError{Field: "space", Value: i.opt.Space, Reason: "this root is already space " + marked.Space, Next: "leave --space out"}
	}
	if err := agree(i.config, marked); err != nil {
		return err
	}
	if err := i.tryStore(ctx, marked.Space); err != nil {
		return err
	}
	i.result.Space, i.result.Already = marked.Space, true
	return i.writeConfig(ctx)
}

// tryStore opens and closes the store of a space.
func (i *initializer) tryStore(ctx context.Context, space string) error {
	store, err := openStore(ctx, i.config.Store, i.root, space, sqlstore.Options{})
	if err != nil {
		return err
	}
	return store.Close()
}

// restore accepts a database that was copied or restored.
func (i *initializer) restore(ctx context.Context, marked *marker) error {
	if config.IsPostgres(i.config.Store) {
		return &lockkeeper.InputError{Field: "restored", Value: i.result.Store, Reason: "PostgreSQL notices a restore by itself", Next: "leave --restored out"}
	}
	path := storePath(i.config.Store, i.root)
	if err := checkOwner(path); err != nil {
		return err
	}
	if i.opt.Confirm == nil {
		return &lockkeeper.RefusedError{Act: "init --restored", Reason: "it needs a person", Next: "run it in a terminal"}
	}
	if err := i.opt.Confirm("init --restored", fmt.Sprintf("The locks of %s are taken from a database that was copied or restored, or that lost its latest changes.\n"+
		"Locks acquired since then are missing from it, and their holders are not seen.", i.root)); err != nil {
		return err
	}
	if err := sqlstore.RestoreSQLite(ctx, path, marked.Space, sqlstore.Options{Mark: i.alive}); err != nil {
		return err
	}
	i.result.Space = marked.Space
	i.result.Made = append(i.result.Made, "a new epoch of fences")
	return i.writeConfig(ctx)
}

// join writes the marker for an existing database.
func (i *initializer) join(ctx context.Context) error {
	if err := i.tryStore(ctx, i.space); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(i.root, DirName), 0o700); err != nil {
		return i.unwritable(err)
	}
	if err := durable.WriteJSON(ctx, markerPath(i.root), marker{Space: i.space, CreatedAt: time.Now().UTC()}, 0o600); err != nil {
		return i.unwritable(err)
	}
	i.result.Space = i.space
	i.result.Made = append(i.result.Made, DirName+"/"+markerName)
	return i.writeConfig(ctx)
}

// make builds .lockkeeper next to its final path and renames it.
func (i *initializer) make(ctx context.Context) (err error) {
	space := i.space
	if space == "" {
		space = newUUID()
	}
	built, err := os.MkdirTemp(i.root, DirName+".init-")
	if err != nil {
		return i.unwritable(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(built)) }()
	if err := os.WriteFile(filepath.Join(built, ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return i.unwritable(err)
	}
	if err := i.makeStore(ctx, built, space); err != nil {
		return err
	}
	err = durable.WriteJSON(ctx, filepath.Join(built, markerName), marker{Space: space, CreatedAt: time.Now().UTC()}, 0o600)
	if err != nil {
		return i.unwritable(err)
	}
	place := filepath.Join(i.root, DirName)
	if err := os.Rename(built, place); err != nil {
		return &lockkeeper.StoreError{Store: place, Reason: "another file or directory without a marker has the name of the lock directory", Err: err,
			Next: "check it and move it away; a state.db in it may contain locks"}
	}
	i.result.Space = space
	i.result.Made = append(i.result.Made, DirName+"/")
	return i.writeConfig(ctx)
}

func (i *initializer) makeStore(ctx context.Context, built, space string) error {
	if config.IsPostgres(i.config.Store) {
		if i.space != "" {
			return i.checkSpace(ctx)
		}
		return sqlstore.CreateSpace(ctx, i.config.Store, space)
	}
	path := storePath(i.config.Store, i.root)
	if rel, err := filepath.Rel(filepath.Join(i.root, DirName), path); err == nil && filepath.IsLocal(rel) {
		path = filepath.Join(built, rel)
	}
	if i.alive != nil { // the directory has data of earlier locks here
		if err := i.alive.Truncate(0); err != nil {
			return err
		}
	}
	return sqlstore.CreateSQLite(ctx, path, space)
}

// checkSpace checks that the space to join exists, so that a mistyped id does not make a new
// one.
func (i *initializer) checkSpace(ctx context.Context) error {
	err := i.tryStore(ctx, i.space)
	var bad *lockkeeper.StoreError
	if !errors.As(err, &bad) || !strings.HasPrefix(bad.Reason, "it has no space") && !strings.HasPrefix(bad.Reason, "there is no Lockkeeper schema") {
		return err
	}
	missing := &lockkeeper.InputError{Field: "space", Value: i.space, Reason: "no space " + i.space + " in this database (" + i.result.Store + ")",
		Next: "copy the id from `lockkeeper init` on a machine that has it; without --space a new one is made"}
	if i.opt.Space == "" {
		missing.Next = "check the store; if a new space is wanted, remove the key space from " + config.FileName
	}
	return missing
}

// writeConfig writes the configuration and the witness of a root. On PostgreSQL the configuration
// names the space, so that a clone joins it.
func (i *initializer) writeConfig(ctx context.Context) error {
	if config.IsPostgres(i.config.Store) {
		if i.file.space == "" {
			i.file.set("space", i.result.Space)
		}
		i.result.NextMachine = joinCommand(i.result.Store, i.result.Space)
	}
	if i.file.changed {
		if err := durable.WriteFile(ctx, filepath.Join(i.root, config.FileName), []byte(i.file.text), 0o644); err != nil {
			return i.unwritable(err)
		}
		i.result.Made = append(i.result.Made, config.FileName)
	}
	allowed := i.config.Gate.AllowedWritePaths
	if i.config.Source("gate.allowed_write_paths") == config.FromDefault { // the file as it is now decides which default
		now, err := config.LoadFile(filepath.Join(i.root, config.FileName))
		if err != nil {
			return err
		}
		allowed = now.Gate.AllowedWritePaths
	}
	if !slices.ContainsFunc(allowed, i.exists) {
		i.result.Allowed = allowed
	}
	if err := makeDir(filepath.Dir(i.world.path)); err != nil {
		return err
	}
	return i.world.remember(ctx, i.result.Space, i.result.Store)
}

func (i *initializer) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(i.root, filepath.FromSlash(path)))
	return err == nil
}

func (i *initializer) unwritable(err error) error {
	p := &lockkeeper.StoreError{Store: i.root, Reason: "the root cannot be written", Err: err, Next: "check its permissions and whether the disk is read-only or full"}
	if errors.Is(err, fs.ErrPermission) {
		p.Next = "run it as a user who may write there"
	}
	return p
}

// newUUID makes a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
