package run

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// checkItem refuses an item whose locked files, or declared reads, are older here than on another
// machine.
func (p *Pipeline) checkItem(ctx context.Context, it *lockkeeper.Item) error {
	if p.opt.CheckCopy == nil {
		return nil
	}
	locks := it.Locks
	d, err := workOf(it)
	if err != nil {
		return err
	}
	if d.Kind == string(flow.BatchUnit) {
		_, b, err := p.opt.Progress.BatchOf(ctx, d.Unit, d.Part)
		if err != nil {
			return err
		}
		if b != nil {
			locks = append(locks[:len(locks):len(locks)], p.locksOn(b.Reads, lockkeeper.Read)...)
		}
	}
	return p.opt.CheckCopy(ctx, locks)
}

// checkCopy does the same for the files that a batch changes and depends on, right before it lands.
func (l *batchRun) checkCopy(ctx context.Context) error {
	if l.p.opt.CheckCopy == nil {
		return nil
	}
	return l.p.opt.CheckCopy(ctx, append(l.p.locksOn(l.batch.WriteTargets, lockkeeper.Write), l.p.locksOn(l.reads(), lockkeeper.Read)...))
}

// locksOn resolves paths. It leaves out what cannot be resolved, because that cannot be locked or
// land either.
func (p *Pipeline) locksOn(paths []string, mode lockkeeper.Mode) (locks []lockkeeper.Lock) {
	for _, path := range paths {
		if l, err := p.opt.Root.Resolve(p.opt.Root.Dir(), path, mode); err == nil {
			locks = append(locks, l)
		}
	}
	return locks
}
