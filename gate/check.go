package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/project/protect"
	"lockkeeper/store"
	"lockkeeper/tree"
)

// The names of the checks, in their order. The last one reads the disk.
const (
	checkAllowlist = "allowlist"
	checkGrant     = "grant"
	checkCoverage  = "coverage"
	checkBase      = "base"
)

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// Check applies the three checks to paths and changes nothing. It returns one error for
// each path, nil if the path may be written.
func (g *Gate) Check(ctx context.Context, grant *lockkeeper.Grant, paths ...string) []error {
	answers := make([]error, len(paths))
	targets := make([]string, len(paths))
	checker := g.opt.Protected.Checker()
	for i, path := range paths {
		targets[i], answers[i] = g.resolve(checker, path)
	}
	err := g.viewGrant(ctx, grant, func(_ store.Reader, rec *store.Record) error {
		for i, target := range targets {
			if answers[i] == nil {
				answers[i] = g.covered(rec, target)
			}
		}
		return nil
	})
	for i := range answers {
		if answers[i] == nil && err != nil {
			answers[i] = g.grantRefused(err, targets[i], grant)
		}
	}
	for some := range slices.Chunk(lockkeeper.Violations(errors.Join(answers...)), lockkeeper.MaxTargets) {
		if err := g.addHolders(ctx, some); err != nil {
			for i := range answers {
				if answers[i] != nil {
					answers[i] = errors.Join(answers[i], err)
				}
			}
			break
		}
	}
	return answers
}

// viewGrant calls the function see with the record of the grant, or nil if there is no grant and
// none is required.
func (g *Gate) viewGrant(ctx context.Context, grant *lockkeeper.Grant, see func(store.Reader, *store.Record) error) error {
	if grant == nil || grant.ID == "" {
		if !g.opt.GrantOptional {
			return &lockkeeper.NotHeldError{GrantID: "none", Reason: "no grant was given", Next: "lockkeeper lock acquire --write PATH"}
		}
		return g.store.View(ctx, func(r store.Reader) error { return see(r, nil) })
	}
	return g.locks.ViewWritable(ctx, grant.ID, grant.Token, see)
}

// sameGrant returns an error if the fence of a grant changed since the first check. The
// fence is part of the name of the stage.
func sameGrant(rec *store.Record, fence uint64) error {
	if rec == nil || rec.Fence == fence {
		return nil
	}
	return &lockkeeper.NotHeldError{GrantID: rec.ID, Reason: "it was released and granted again"}
}

// Permits applies the first check to a path, for a caller that plans a write. It refuses a
// path that a gate with these options never writes. It needs no open gate.
func Permits(root *tree.Root, opt Options, path string) error {
	opt = opt.complete(root)
	_, err := (&Gate{paths: root, opt: opt}).resolve(opt.Protected.Checker(), path)
	return err
}

// resolve returns the canonical name of a path and applies the first check.
func (g *Gate) resolve(checker *protect.Checker, path string) (string, error) {
	l, err := g.paths.Resolve("", path, lockkeeper.Write)
	if err != nil {
		return "", err
	}
	if l.Kind == lockkeeper.Dir {
		return "", &lockkeeper.InputError{Field: "path", Value: path, Reason: "is a directory", Next: "name the files in it"}
	}
	return l.Path, g.allowed(checker, l.Path)
}

// allowed applies the first check.
func (g *Gate) allowed(checker *protect.Checker, path string) error {
	refused := func(reason, next string) error {
		return &lockkeeper.LockViolationError{Check: checkAllowlist, Path: path, Reason: reason, Next: next}
	}
	if class, is := checker.Below(path); is {
		return protected(path, class)
	}
	at := func(dir string) bool { return dir == path || lockkeeper.IsAncestor(dir, path) }
	if !slices.ContainsFunc(g.opt.Allowed, at) {
		return refused("outside the allowlist: "+strings.Join(g.opt.Allowed, ", "), "ask a person to add its directory to gate.allowed_write_paths in lockkeeper.yaml")
	}
	return nil
}

func protected(path string, class protect.Class) error {
	return &lockkeeper.LockViolationError{Check: checkAllowlist, Path: path, Reason: "protected: " + class.Reason(), Next: class.Next()}
}

// covered applies the third check. A read lock or a lock on a parent directory does not
// cover a path.
func (g *Gate) covered(rec *store.Record, path string) error {
	if rec == nil || rec.Covers(path) {
		return nil
	}
	held := "the grant does not hold a lock on it"
	if i, ok := lockkeeper.Find(rec.Locks, path); ok {
		held = fmt.Sprintf("the grant holds a %s lock on it, not a write lock", rec.Locks[i].Mode)
	}
	return &lockkeeper.LockViolationError{Check: checkCoverage, Path: path, GrantID: rec.ID, Reason: held,
		Next: "name it when you acquire the locks"}
}

// grantRefused returns the refusal of the second check for one path, or err itself if it does not concern the grant.
func (g *Gate) grantRefused(err error, path string, grant *lockkeeper.Grant) error {
	v := &lockkeeper.LockViolationError{Check: checkGrant, Path: path, Next: "acquire again"}
	if grant != nil {
		v.GrantID = grant.ID
	}
	if gone, ok := errors.AsType[*lockkeeper.NotHeldError](err); ok {
		v.Reason = gone.Reason
	} else if input, ok := errors.AsType[*lockkeeper.InputError](err); ok && input.Field == "grant" {
		v.Reason = input.Reason
	} else {
		return err
	}
	return v
}

// addHolders sets the current holder of each refused path.
func (g *Gate) addHolders(ctx context.Context, refused []*lockkeeper.LockViolationError) error {
	if len(refused) == 0 {
		return nil
	}
	locks := make([]lockkeeper.Lock, len(refused))
	for i, v := range refused {
		locks[i] = lockkeeper.Lock{Target: lockkeeper.Target{Path: v.Path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
	}
	found, err := g.locks.CheckConflicts(ctx, locks)
	if err != nil {
		return err
	}
	for _, v := range refused {
		i := slices.IndexFunc(found, func(c lockkeeper.ConflictInfo) bool {
			return c.Path == v.Path && c.Kind == lockkeeper.Held && c.GrantID != v.GrantID
		})
		if i >= 0 {
			v.HeldBy = &found[i]
		}
	}
	return nil
}

// A pathState is what a commit finds at a path of the tree.
type pathState struct {
	version lockkeeper.Version
	changed time.Time // when the file last changed
	dir     *dirID    // the directory of the path; nil if it is missing
}

// inspectPath reads the state of a path. It refuses a file that cannot be replaced.
func (g *Gate) inspectPath(path string) (found pathState, err error) {
	bad := func(reason, next string) error {
		return &lockkeeper.InputError{Field: "path", Value: path, Reason: reason, Next: next}
	}
	dir, name, err := g.openParent(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return found, bad("permission denied on its directory", "ask for write permission there")
	case isElsewhere(err):
		return found, justReplaced(path)
	case err != nil:
		return found, unlessMissing(err)
	}
	defer dir.Close()
	if err := writable(dir, path); err != nil {
		return found, err
	}
	if found.dir, err = g.identify(dir); err != nil {
		return found, err
	}
	st, err := g.disk.Lstat(dir, name)
	switch {
	case err != nil:
		return found, unlessMissing(err)
	case st.Mode.IsDir():
		return found, bad("is a directory", "name the files in it")
	case !st.Mode.IsRegular():
		return found, bad("neither a file nor a directory", "write regular files only")
	case st.Links > 1:
		return found, bad(fmt.Sprintf("the file has %d hard links, and its other names would keep the old content", st.Links), "break the link first")
	case st.Mode.Perm()&0o222 == 0:
		return found, bad("the file is read-only", "if it should change, make it writable first")
	}
	found.changed = st.Changed
	found.version, err = g.observe(dir, name)
	return found, err
}

// justReplaced returns the refusal of a path whose directory was replaced after the path
// was resolved.
func justReplaced(path string) error {
	return &lockkeeper.InputError{Field: "path", Value: path, Reason: "its directory was just replaced by a link, a mount or a file", Next: "check the directory, then try again"}
}

// writable refuses a directory in which this process may not rename files.
func writable(dir *os.File, path string) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o222 != 0 && mayWrite(dir) {
		return nil
	}
	return &lockkeeper.InputError{Field: "path", Value: path, Reason: "its directory is read-only", Next: "make the directory writable first"}
}

// mergeFirst is the next step after a write that was refused because another writer changed the
// file. The grant still expects the earlier version, so the same write would be refused again.
const mergeFirst = "read the current content, merge your change into it, and land it with --onto-current (in the API: with the current base)"

func changedSince(path, grantID string, want, found lockkeeper.Version) error {
	return &lockkeeper.LockViolationError{Check: checkBase, Path: path, GrantID: grantID,
		Reason: differs(want, found),
		Next:   mergeFirst}
}

// changedUnder returns the refusal of a grant's first write to a file that another writer
// changed while the grant was held.
func changedUnder(path, grantID string, changed, since time.Time) error {
	return &lockkeeper.LockViolationError{Check: checkBase, Path: path, GrantID: grantID,
		Reason: fmt.Sprintf("another writer changed it, or its attributes, at %s, after the grant was acquired at %s", stamp(changed), stamp(since)),
		Next:   mergeFirst}
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05.000Z") }

// differs returns the reason for refusing a change whose base is not the current version.
func differs(want, found lockkeeper.Version) string {
	return fmt.Sprintf("another writer changed it: expected %s, found %s", brief(want), brief(found))
}

// brief returns a short form of a version, for messages.
func brief(v lockkeeper.Version) string {
	if !v.Exists() {
		return "nothing"
	}
	return fmt.Sprintf("%s %04o %x", v.Kind, v.Mode.Perm(), v.Sum[:6])
}

// missingDirs lists the missing directories of new files, outermost first.
func (g *Gate) missingDirs(items []*item) ([]string, error) {
	var missing []string
	known := map[string]bool{lockkeeper.Root: true}
	for _, it := range items {
		if it.alter.Old.Exists() || it.Delete {
			continue
		}
		for dir, _ := split(it.target); !known[dir]; dir, _ = split(dir) {
			f, err := g.disk.OpenDir(g.root, dir)
			if err == nil {
				known[dir] = true
				if err := errors.Join(writable(f, it.target), g.disk.Close(f)); err != nil {
					return nil, err
				}
				break
			}
			if isElsewhere(err) {
				return nil, justReplaced(it.target)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			known[dir] = true
			missing = append(missing, dir)
		}
	}
	return unique(missing), nil
}

// mayWrite reports whether this process may create and rename files in a directory.
func mayWrite(dir *os.File) bool {
	conn, err := dir.SyscallConn()
	if err != nil {
		return false
	}
	var denied error
	err = conn.Control(func(fd uintptr) { denied = unix.Faccessat(int(fd), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS) })
	return err == nil && denied == nil
}

// isInUse reports whether a directory could not be removed because it is not empty.
func isInUse(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY)
}
