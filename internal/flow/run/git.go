package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/git"
)

// enterBranch switches to the branch of the run, under the lock of the repository.
func (p *Pipeline) enterBranch(ctx context.Context) error {
	if p.opt.Branch != "" {
		if err := p.lockGit(ctx, "branch "+p.opt.Branch, func() error { return p.opt.Repo.Switch(ctx, p.opt.Branch) }); err != nil {
			return err
		}
	}
	at, err := p.opt.Repo.State(ctx)
	p.branch = at.Branch
	return err
}

// lockGit runs f under the lock on git's shared state, or without it in the legacy mode.
func (p *Pipeline) lockGit(ctx context.Context, holder string, f func() error) error {
	if p.opt.Locks == nil {
		return f()
	}
	held, err := p.opt.Locks.Acquire(ctx, lockkeeper.Request{Holder: holder, Process: p.self, Locks: []lockkeeper.Lock{
		{Target: lockkeeper.Target{Path: lockkeeper.GitTarget, Kind: lockkeeper.File}, Mode: lockkeeper.Write}}}, commitWait)
	if err != nil {
		return err
	}
	err = f()
	return errors.Join(err, held.Release(context.WithoutCancel(ctx)))
}

// repairIndex repairs git's index, so that the next commit of another git process does not revert
// the last commits of the run.
func (p *Pipeline) repairIndex(ctx context.Context) error {
	if p.opt.Repo == nil || !p.opt.Commit {
		return nil
	}
	if needed, err := p.opt.Repo.NeedsRepair(ctx); err != nil || !needed {
		return err
	}
	return p.lockGit(ctx, "index after "+p.opt.Flow.Name, func() error { return p.opt.Repo.RepairIndex(ctx) })
}

// awaitRepo waits while a person rebases or has another branch checked out.
func (p *Pipeline) awaitRepo(ctx context.Context, q question) error {
	if p.opt.Repo == nil {
		return nil
	}
	paused := false
	err := p.opt.Repo.AwaitIdle(ctx, git.Want{Branch: p.branch, Tell: func(why *git.PausedError) {
		paused = true
		p.news(NewsPaused, q, "landing waits: "+why.Error())
	}})
	if paused && err == nil {
		p.news(NewsResumed, q, "landing continues")
	}
	return err
}

// rewritten lists the files that git changed since the workspace was made or the last call:
// by commits, checkouts and rebases of people.
func (l *batchRun) rewritten(ctx context.Context) ([]string, error) {
	if l.p.opt.Repo == nil {
		return nil, nil
	}
	from := cmp.Or(l.head, l.w.Commit())
	at, err := l.p.opt.Repo.State(ctx)
	if l.head = at.Head; err != nil || from == "" || at.Head == "" || at.Head == from {
		return nil, err
	}
	return l.p.opt.Repo.Changed(ctx, from, at.Head)
}

// commitWait is how long a commit waits for other users of the repository.
const commitWait = 10 * time.Minute

// These trailers identify a commit of a batch.
const (
	batchTrailer = "Lockkeeper-Batch"
	grantTrailer = "Lockkeeper-Grant"
	fenceTrailer = "Lockkeeper-Fence"
)

// commit creates one git commit with exactly the batch's files.
func (p *Pipeline) commit(ctx context.Context, l *batchRun, done flow.Landed) (hash string, err error) {
	if p.opt.Repo == nil || !p.opt.Commit || len(l.files) == 0 {
		return "", nil
	}
	name := l.unit.Name + "/" + l.batch.ID
	c := git.Commit{Subject: name + ": " + l.title(), Body: l.batch.Summary(), Trailers: []git.Trailer{
		{Key: batchTrailer, Value: name}}}
	if done.Grant != "" {
		c.Trailers = append(c.Trailers, git.Trailer{Key: grantTrailer, Value: done.Grant}, git.Trailer{Key: fenceTrailer, Value: fmt.Sprint(done.Fence)})
	}
	c.Paths = l.paths()
	err = p.lockGit(ctx, name+" commit", func() error {
		for {
			made, err := p.opt.Repo.Commit(ctx, c)
			var busy *git.PausedError
			if err == nil && made.Hash == "" { // a run crashed after the commit
				made.Hash, err = p.opt.Repo.Find(ctx, batchTrailer, name)
			}
			if !errors.As(err, &busy) {
				hash = made.Hash
				return err
			}
			if err := p.awaitRepo(ctx, l.ask("land", "")); err != nil {
				return err
			}
		}
	})
	if err == nil && hash != "" && p.opt.Push {
		if err := p.opt.Repo.Push(ctx, hash); err != nil {
			p.news(NewsWarning, l.ask("land", ""), "it is committed, but other machines cannot follow: "+err.Error())
		}
	}
	return hash, err
}

// PushLast pushes the last commit of a run in this branch, unless the server has it, and returns why it could not;
// empty: it could. A push after a landing may have failed, also in an earlier process.
// It is called when no work is running.
func (p *Pipeline) PushLast(ctx context.Context) string {
	if p.opt.Repo == nil || !p.opt.Commit || !p.opt.Push {
		return ""
	}
	hash, err := p.opt.Repo.Last(ctx, batchTrailer)
	if err == nil && hash != "" {
		err = p.opt.Repo.Push(ctx, hash)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func (l *batchRun) title() string {
	if l.batch.Title != "" {
		return l.batch.Title
	}
	return counted(len(l.files), "file")
}
