package conduct

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/git"
	"lockkeeper/internal/git/parcel"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
)

// conducts reports whether the conductor of a run lives: it renews the run and holds its lock.
func conducts(ctx context.Context, a *project.Project, r *fleet.Run) (bool, error) {
	if !r.Lives() {
		return false, nil
	}
	held, err := a.Locks.Request(ctx, r.Grant)
	if err != nil || held == nil {
		return false, err
	}
	return held.Process == nil || a.Host.Liveness(*held.Process) != lockkeeper.ProcessDead, nil
}

// Orphan returns the run whose conductor, on another copy of the codebase, disappeared, if its documents
// are reachable from here. A run that this copy began, and that ended elsewhere, is one as well: what is known about
// it here is old. Orphan returns nil if there is none.
func Orphan(ctx context.Context, a *project.Project) (*fleet.Run, error) {
	f := Fleet(a)
	if f == nil || a.Config.Run.Locking != "on" {
		return nil, nil
	}
	r, err := f.Run(ctx)
	if err != nil || r == nil || r.Documents == "" {
		return nil, err
	}
	if !r.Ended.IsZero() {
		last, err := CurrentRun(a)
		if err != nil || last == nil || last.ID != r.ID || !last.Ended.IsZero() {
			return nil, err
		}
	}
	if lives, err := conducts(ctx, a, r); lives || err != nil {
		return nil, err
	}
	g, err := a.Gate()
	if err != nil || r.Site == g.SiteID() {
		return nil, err
	}
	return r, nil
}

// A Takeover is the conductor's part of a run that another machine began. It holds the conductor's lock,
// and the documents and calls of the run are on this disk.
type Takeover struct {
	Options Options // with which the run was started

	lease  *lock.Grant
	holder string
	landed []string // the files of landings that the lost machine did not push
}

// TakeOver takes the conductor's part of an orphan. If another process conducts, or the lock of the lost
// machine has not ended yet, it returns a *lockkeeper.BlockedError.
func TakeOver(ctx context.Context, a *project.Project, of *fleet.Run, env []string, tell func(run.News)) (t *Takeover, err error) {
	holder, err := process.Holder()
	if err != nil {
		return nil, err
	}
	repo, err := parcel.Open(ctx, a.Root.Dir(), filepath.Join(joinDir(a), "index"), env)
	if err != nil {
		return nil, err
	}
	remote, err := repo.Remote(ctx, a.Config.Run.Remote)
	if err != nil {
		return nil, err
	}
	lease, err := Lease(ctx, a, holder)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
		}
	}()
	now, err := Orphan(ctx, a) // as it is under the lock
	if err != nil {
		return nil, err
	}
	if now == nil || now.ID != of.ID {
		return nil, &lockkeeper.RefusedError{Act: "continuing the run " + of.ID, Reason: "it ended, or another machine continued it", Next: "lockkeeper run"}
	}
	if err := repo.Fetch(ctx, remote, now.Ref, now.Documents); err != nil {
		return nil, err
	}
	if err := follow(ctx, a, holder, env); err != nil {
		tell(run.News{At: time.Now(), Kind: run.NewsWarning, Text: err.Error()})
	}
	about, err := restore(ctx, a, repo, now.Documents)
	if err != nil {
		return nil, err
	}
	landed, err := completeLandings(ctx, a, holder, tell)
	if err != nil {
		return nil, err
	}
	return &Takeover{Options: about.Options, lease: lease, holder: holder, landed: landed}, nil
}

// With returns the options with which the run was started, with those that a person gave here.
func (t *Takeover) With(o Options) Options {
	was := t.Options
	o.Taken = t
	o.Flow, o.Plan, o.New, o.Retry = was.Flow, "", false, false // the plan is that of the run
	if len(o.Only) == 0 {
		o.Only = was.Only
	}
	o.Auto, o.Branch = cmp.Or(o.Auto, was.Auto), cmp.Or(o.Branch, was.Branch)
	o.USD, o.Tokens, o.Wait = cmp.Or(o.USD, was.USD), cmp.Or(o.Tokens, was.Tokens), o.Wait || was.Wait
	return o
}

// Close gives the conductor's part up, unless a run has it.
func (t *Takeover) Close(ctx context.Context) error {
	if t == nil || t.lease == nil {
		return nil
	}
	lease := t.lease
	t.lease = nil
	return lease.Release(context.WithoutCancel(ctx))
}

// take returns the conductor's lock, which belongs to the caller then; nil: there is none.
func (t *Takeover) take() *lock.Grant {
	if t == nil {
		return nil
	}
	lease := t.lease
	t.lease = nil
	return lease
}

// follow brings this clone to what the other machine pushed, under locks on the files that change.
func follow(ctx context.Context, a *project.Project, holder string, env []string) error {
	r, err := git.Open(ctx, a.Root.Dir(), env)
	if err != nil {
		return err
	}
	return r.Follow(ctx, func(paths []string) (func() error, error) {
		held, err := holdFiles(ctx, a, holder, append(paths, lockkeeper.GitTarget))
		if err != nil {
			return nil, err
		}
		return func() error { return held.Release(context.WithoutCancel(ctx)) }, nil
	})
}

// holdFiles acquires write locks. Those of a lost machine end with its leases.
func holdFiles(ctx context.Context, a *project.Project, holder string, paths []string) (*lock.Grant, error) {
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	var locks []lockkeeper.Lock
	for _, path := range paths {
		locks = append(locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	return a.Locks.Acquire(ctx, lockkeeper.Request{Holder: holder, Locks: locks, Process: &self}, landingWait)
}

// landingWait is how long the locks of a lost machine may last.
const landingWait = 5 * time.Minute

// completeLandings lands what the lost machine landed and did not push: the files of its batches are among
// the documents. A landing of a file that a person changed here is left out, and the start of the run says that this
// clone is behind.
func completeLandings(ctx context.Context, a *project.Project, holder string, tell func(run.News)) (landed []string, err error) {
	tried := map[string]bool{}
	for {
		behind, _ := a.CheckTree(ctx).(interface{ Unwrap() []error })
		if behind == nil {
			return landed, nil // the start of the run says what else is wrong
		}
		missing := map[uint64][]gate.Change{} // by landing
		for _, one := range behind.Unwrap() {
			b, ok := errors.AsType[*lockkeeper.BehindError](one)
			if !ok || tried[b.Path] {
				continue
			}
			tried[b.Path] = true
			change, err := missingChange(ctx, a, b)
			if err != nil {
				return nil, err
			}
			if change != nil {
				missing[b.Landing] = append(missing[b.Landing], *change)
			}
		}
		if len(missing) == 0 {
			return landed, nil
		}
		for _, seq := range slices.Sorted(maps.Keys(missing)) {
			what := fmt.Sprintf("landing %d, which the lost machine did not push", seq)
			if err := landMissing(ctx, a, holder, missing[seq]); err != nil {
				tell(run.News{At: time.Now(), Kind: run.NewsWarning, Text: what + ", cannot land here: " + err.Error()})
				continue
			}
			tell(run.News{At: time.Now(), Kind: run.NewsRun, Text: what + ", has landed here"})
			for _, c := range missing[seq] {
				landed = append(landed, c.Path)
			}
		}
	}
}

// landMissing lands changes under a grant of their own.
func landMissing(ctx context.Context, a *project.Project, holder string, changes []gate.Change) (err error) {
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	held, err := holdFiles(ctx, a, holder, paths)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release(context.WithoutCancel(ctx))) }()
	g, err := a.Gate()
	if err != nil {
		return err
	}
	_, err = g.Commit(ctx, &held.Grant, changes)
	return err
}

// commit commits and pushes the landings of the lost machine that no batch of this run has committed: their batches
// were complete.
func (t *Takeover) commit(ctx context.Context, a *project.Project, repo *git.Repo) error {
	if t == nil || len(t.landed) == 0 || repo == nil || a.Config.Run.Commit != "on" {
		return nil
	}
	held, err := holdFiles(ctx, a, t.holder, append(slices.Clone(t.landed), lockkeeper.GitTarget))
	if err != nil {
		return err
	}
	made, err := repo.Commit(ctx, git.Commit{Subject: "Landings of a machine that was lost before it pushed them", Paths: t.landed})
	if err = errors.Join(err, held.Release(context.WithoutCancel(ctx))); err != nil || made.Hash == "" || a.Config.Run.Push != "on" {
		return err
	}
	return repo.Push(ctx, made.Hash)
}

// missingChange returns the change that makes a file as its last landing left it. It returns nil if the
// content is not among the documents, or the file was not as that landing found it.
func missingChange(ctx context.Context, a *project.Project, b *lockkeeper.BehindError) (*gate.Change, error) {
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	l, err := g.Landing(ctx, b.Landing)
	if err != nil || l == nil {
		return nil, err
	}
	for _, c := range l.Changes {
		if c.Path != b.Path {
			continue
		}
		if !b.Want.Exists() {
			return &gate.Change{Path: b.Path, Delete: true, Base: &c.Old}, nil
		}
		path, err := storedContent(a, b.Want.Sum)
		if err != nil || path == "" {
			return nil, err
		}
		mode := b.Want.Mode
		return &gate.Change{Path: b.Path, Base: &c.Old, Mode: &mode, Stored: true, Body: func() (io.ReadCloser, error) { return os.Open(path) }}, nil
	}
	return nil, nil
}

// storedContent finds a content among the documents. It returns "" if there is none.
func storedContent(a *project.Project, sum [32]byte) (path string, err error) {
	name := hex.EncodeToString(sum[:])
	err = filepath.WalkDir(a.Below(a.Config.Run.SidecarDir), func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == name && e.Type().IsRegular() && filepath.Base(filepath.Dir(at)) == "files" {
			path = at
			return fs.SkipAll
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return path, err
}
