package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/git/coverage"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Targets are the paths a command names, by mode.
type Targets struct {
	read, write, Upgradeable []string
	readNodes, writeNodes    []string
	UpgradeableNodes         []string
	readFrom, writeFrom      []string
}

func (t *Targets) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&t.read, "read", nil, "a `path` to read, a list such as a.py,b.py, or a quoted pattern; repeatable")
	f.StringArrayVar(&t.write, "write", nil, "a `path` to write, a list such as a.py,b.py, or a quoted pattern; repeatable")
	f.StringArrayVar(&t.readNodes, "read-node", nil, "a `node` to read, such as project/p1/map/m2, with its files; with a slash at the end with all below it; repeatable")
	f.StringArrayVar(&t.writeNodes, "write-node", nil, "a `node` to write; repeatable")
	f.StringArrayVar(&t.readFrom, "read-from", nil, "a `file` with paths to read, one per line or separated by NUL; - is standard input")
	f.StringArrayVar(&t.writeFrom, "write-from", nil, "a `file` with paths to write, one per line or separated by NUL; - is standard input")
}

// Resolve returns the locks for all paths, or an error if one path is invalid.
func (t *Targets) Resolve(p *Program, a *project.Project) ([]lockkeeper.Lock, error) {
	lists := slices.Concat(t.readFrom, t.writeFrom)
	if i := slices.Index(lists, "-"); i >= 0 && slices.Contains(lists[i+1:], "-") {
		return nil, &lockkeeper.InputError{Field: "file of paths", Value: "-", Reason: "standard input can be read only once", Next: "give one of the lists as a file"}
	}
	var locks []lockkeeper.Lock
	add := func(mode lockkeeper.Mode, path string) error {
		if len(locks) >= lockkeeper.MaxTargets {
			return &lockkeeper.InputError{Field: "targets", Value: fmt.Sprintf("more than %d", lockkeeper.MaxTargets),
				Reason: fmt.Sprintf("over the limit of %d", lockkeeper.MaxTargets), Next: "split the work, or lock a directory for reading"}
		}
		l, err := a.Resolve(mode, path)
		locks = append(locks, l)
		return err
	}
	for _, given := range []struct {
		mode  lockkeeper.Mode
		paths []string
		files []string
	}{
		{lockkeeper.Read, t.read, t.readFrom},
		{lockkeeper.Upgradeable, t.Upgradeable, nil},
		{lockkeeper.Write, t.write, t.writeFrom},
	} {
		for _, value := range given.paths {
			paths, err := p.Spread(value, given.mode == lockkeeper.Read)
			if err != nil {
				return nil, err
			}
			for _, path := range paths {
				if err := add(given.mode, path); err != nil {
					return nil, err
				}
			}
		}
		for _, file := range given.files {
			if err := p.eachPath(file, func(path string) error { return add(given.mode, path) }); err != nil {
				return nil, err
			}
		}
	}
	for _, given := range []struct {
		mode  lockkeeper.Mode
		nodes []string
	}{{lockkeeper.Read, t.readNodes}, {lockkeeper.Upgradeable, t.UpgradeableNodes}, {lockkeeper.Write, t.writeNodes}} {
		found, err := acts.NodeLocks(a, given.mode, given.nodes...)
		if err != nil {
			return nil, err
		}
		locks = append(locks, found...)
	}
	return locks, lockkeeper.CheckCount(len(locks))
}

// listLimit is more than the size of the largest request.
const listLimit = lockkeeper.MaxTargets * (lockkeeper.MaxPathSize + 1)

// eachPath visits the paths in a file or on standard input. They are separated by NUL bytes
// if there is one, and by newlines otherwise. All other bytes belong to the path.
func (p *Program) eachPath(name string, visit func(string) error) error {
	text, err := p.readList(name)
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return &lockkeeper.InputError{Field: "file of paths", Value: name, Reason: err.Error(), Next: "name a file you may read, or - for standard input"}
	}
	end := "\n"
	if strings.Contains(text, "\x00") {
		end = "\x00"
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(text, end), end) {
		if text == "" {
			break
		}
		if end == "\n" && strings.HasSuffix(path, "\r") {
			return &lockkeeper.InputError{Field: "path", Value: path, Reason: "it ends with a carriage return",
				Next: "end the lines of " + name + " with a newline only; if the name contains it, separate the list with NUL"}
		}
		if err := visit(path); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) readList(name string) (string, error) {
	from := p.In
	if name != "-" {
		f, err := os.Open(p.Path(name))
		if err != nil {
			return "", err
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, listLimit+1))
	if err == nil && len(text) > listLimit {
		err = fmt.Errorf("over the limit of %d paths", lockkeeper.MaxTargets)
	}
	return string(text), err
}

const notesShown = 8

// Notes warns about paths that may be mistakes: new files in missing directories.
func (p *Program) Notes(a *project.Project, locks []lockkeeper.Lock) {
	if p.JSON {
		return
	}
	missing := func(path string) bool {
		_, err := os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(path)))
		return errors.Is(err, fs.ErrNotExist)
	}
	shown := 0
	for _, l := range locks {
		if l.Level() > 0 || l.Mode != lockkeeper.Write || !missing(l.Path) {
			continue
		}
		if parent, _ := lockkeeper.Parent(l.Path); !missing(parent) {
			continue
		}
		if shown++; shown > notesShown {
			p.Note("and more such paths")
			return
		}
		p.Note("%s does not exist yet, nor does its directory", term.Clean(l.Path))
	}
}

// OwnLock has the options of a command that needs locks for its own short work.
type OwnLock struct {
	Grant GrantID // an existing grant; empty: acquire one
	Wait  term.Duration
}

func (o *OwnLock) Flags(f *pflag.FlagSet) {
	f.Var(&o.Grant, "grant", "the `id` of your grant that holds the paths (default: acquire the locks for this)")
	f.Var(&o.Wait, "wait", "how long to wait if blocked: 5m if no time follows (default: do not wait)")
}

// Under does work on files under a grant: the named grant of this user, or a new one that
// is released after the work.
func (p *Program) Under(cmd *cobra.Command, a *project.Project, reason string, o OwnLock, paths []string, work func(context.Context, *lockkeeper.Grant) error) error {
	ctx, stop := Interruptible(cmd.Context())
	defer stop()
	if o.Grant != "" {
		grant, err := a.GrantOf(ctx, string(o.Grant))
		if err == nil {
			err = work(ctx, grant)
		}
		if err != nil {
			return Interrupted(ctx, errors.Join(err, p.ExplainGrant(ctx, a, o.Grant, err)))
		}
		return nil
	}
	mine, err := p.Mine(ctx)
	if err != nil {
		return err
	}
	own := acts.Taking(mine.Holder(), func(ctx context.Context, req lockkeeper.Request) (*lock.Grant, error) {
		return p.Take(ctx, a, req, time.Duration(o.Wait), a.Hold)
	})
	return own(ctx, reason, paths, func(ctx context.Context, grant *lockkeeper.Grant) error {
		if err := work(ctx, grant); err != nil {
			return Interrupted(ctx, err)
		}
		return nil
	})
}

// Take acquires the locks of a request with one of the acquire functions of the project. If the request
// waits, it says for whom, and when the wait is over.
func (p *Program) Take(ctx context.Context, a *project.Project, req lockkeeper.Request, wait time.Duration,
	acquire func(context.Context, lockkeeper.Request, time.Duration) (*lock.Grant, error)) (*lock.Grant, error) {
	if err := p.refuseDeadlock(ctx, a, req, wait); err != nil {
		return nil, err
	}
	began := p.Now()
	waited := p.announce(ctx, a, req, wait)
	g, err := acquire(ctx, req, wait)
	if err != nil {
		return nil, Interrupted(ctx, err)
	}
	if waited {
		fmt.Fprintf(p.Err, "acquired after %s\n", term.Span(p.Now().Sub(began)))
	}
	return g, nil
}

// refuseDeadlock refuses to wait for a grant that this command runs under, because that
// grant ends only after the command.
func (p *Program) refuseDeadlock(ctx context.Context, a *project.Project, req lockkeeper.Request, wait time.Duration) error {
	under := process.Under(p.Env)
	if len(under) == 0 || wait <= 0 {
		return nil
	}
	var found []lockkeeper.ConflictInfo
	err := store.Retry(ctx, wait, func() (err error) {
		found, err = a.Locks.CheckConflicts(ctx, req.Locks)
		return err
	})
	if err != nil {
		return Interrupted(ctx, err)
	}
	for _, c := range found {
		if slices.Contains(under, c.GrantID) {
			return &lockkeeper.BlockedError{Holder: req.Holder, Conflicts: found}
		}
	}
	return nil
}

// announce says on standard error who blocks the request, and reports whether there is anyone.
func (p *Program) announce(ctx context.Context, a *project.Project, req lockkeeper.Request, wait time.Duration) bool {
	if wait <= 0 || p.JSON || p.Quiet {
		return false
	}
	found, err := a.Locks.CheckConflicts(ctx, req.Locks)
	if err != nil || len(found) == 0 {
		return false // the request itself reports errors
	}
	p.readReasons(ctx, a, &lockkeeper.BlockedError{Conflicts: found})
	fmt.Fprintf(p.Err, "waiting up to %s:\n", term.Span(wait))
	p.conflicts(req.Holder, found, false)
	return true
}

// ExplainGrant adds to a refusal that the grant this command runs under cannot be used: its
// token stays with the supervisor. The command may edit the file in place instead.
func (p *Program) ExplainGrant(ctx context.Context, a *project.Project, grant GrantID, refusal error) error {
	under := process.Under(p.Env)
	if len(under) == 0 || grant != "" && !slices.Contains(under, string(grant)) {
		return nil
	}
	for _, v := range lockkeeper.Violations(refusal) {
		if v.Check != "grant" {
			continue
		}
		held, err := coverage.Writer(ctx, a, v.Path)
		if err != nil {
			return err
		}
		v.Reason += "; lock exec keeps the token of its grant"
		next := "acquire a grant with lockkeeper lock acquire --write PATH, and give its id with --grant"
		if held != nil && slices.Contains(under, held.ID) {
			v.Reason += "; its command may edit the file directly: this lock covers the edit"
			next = "edit " + v.Path + " in place"
		}
		if _, kept, found := strings.Cut(v.Next, "; "); found { // the rest of the step says where the content is kept
			next += "; " + kept
		}
		v.Next = next
	}
	return nil
}

// UndoStep returns the command that undoes a landing, while its grant is held and after.
func UndoStep(landing uint64, grant GrantID) string {
	if grant == "" {
		return fmt.Sprintf("lockkeeper undo %d undoes it", landing)
	}
	return fmt.Sprintf("lockkeeper undo %d --grant %s undoes it; after lock release: lockkeeper undo %d", landing, lockkeeper.ShortID(string(grant)), landing)
}

// GrantID is a flag for the id of a grant, or the start of one. It refuses an invalid id at once, because an
// empty $grant makes the next word its value.
type GrantID string

func (g *GrantID) String() string { return string(*g) }

func (g *GrantID) Type() string { return "id" }

func (g *GrantID) Set(text string) error {
	*g = GrantID(text)
	return project.CheckGrantName(text)
}
