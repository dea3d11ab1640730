package progress

import (
	"context"
	"maps"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// exclusions records what people excluded from runs. It is stored in the folder of the unit.
type exclusions struct {
	Unit    *Exclusion                `json:"unit,omitempty"`
	Batches map[string]batchExclusion `json:"batches,omitempty"` // by id
}

// A batchExclusion is an exclusion of one definition of a batch.
type batchExclusion struct {
	Exclusion
	Batch string `json:"batch_sha256"`
}

// leaveOut gives excluded batches and units their status. No phase is left of them. A batch that
// comes after an excluded one is excluded with it, because it would build on what is missing.
func (u *Unit) leaveOut(f flow.Flow) {
	x := u.docs.excluded.value
	if x == nil {
		return
	}
	if x.Unit != nil && u.status != flow.Complete {
		u.Excluded, u.Left, u.phase, u.status, u.AwaitsReview = x.Unit, u.phase, "", flow.Excluded, false
	}
	for again := true; again; {
		again = false
		for i := range u.Batches {
			b := &u.Batches[i]
			if why := u.exclusionOf(b, x); why != nil && b.Next != "" && b.Excluded == nil {
				b.Excluded, b.Left, b.Next, b.Status, b.AwaitsReview, again = why, b.Next, "", flow.Excluded, false, true
			}
		}
	}
	if len(x.Batches) == 0 || u.Excluded != nil {
		return
	}
	for i := range u.Batches {
		u.Batches[i].Blocked = u.blocked(u.Batches[i])
	}
	if u.Plan != nil && u.Plan.Approved != nil {
		u.judgeBatches(f)
	}
}

// exclusionOf returns why a batch is excluded: itself, with its unit, or with a batch that it comes
// after.
func (u *Unit) exclusionOf(b *Batch, x *exclusions) *Exclusion {
	if u.Excluded != nil {
		return u.Excluded
	}
	if own, ok := x.Batches[b.ID]; ok && own.Batch == b.Digest {
		return &own.Exclusion
	}
	for _, id := range b.After {
		if first, ok := u.Batch(id); ok && first.Excluded != nil {
			return &Exclusion{By: first.Excluded.By, At: first.Excluded.At, Reason: "it comes after " + id + ", which is excluded: " + first.Excluded.Reason, Follows: true}
		}
	}
	return nil
}

// Exclude excludes a unit, or one of its batches, from this run and later ones, until Include. It
// returns the batches that are excluded now and were not before.
func (b *Tracker) Exclude(ctx context.Context, unit, batch, reason, by string) (left []string, err error) {
	if strings.TrimSpace(reason) == "" {
		return nil, &lockkeeper.InputError{Field: "why", Value: reason, Reason: "required", Next: "say why it is excluded"}
	}
	err = b.changeExclusions(ctx, unit, by, func(u *Unit, x *exclusions) error {
		left = nil
		why := Exclusion{By: by, At: b.time(), Reason: reason}
		if u.Excluded != nil {
			return refused("exclude "+unit, "include it again first", "it was excluded by %s at %s", u.Excluded.By, stamp(u.Excluded.At))
		}
		if batch == "" {
			if u.status == flow.Complete {
				return refused("exclude "+unit, "undo its landings to take its changes back", "it is complete")
			}
			x.Unit = &why
		} else {
			is, err := u.needBatch("exclude", batch)
			switch {
			case err != nil:
				return err
			case is.Excluded != nil:
				return refused("exclude "+unit+"/"+batch, "include it again first", "it was excluded by %s at %s", is.Excluded.By, stamp(is.Excluded.At))
			case is.Next == "":
				return refused("exclude "+unit+"/"+batch, "undo it to take its changes back", "it is complete")
			}
			x.Batches[batch] = batchExclusion{why, is.Digest}
		}
		was := u.excludedBatches()
		u.docs.excluded.value = x
		u.leaveOut(b.flow)
		left = slices.DeleteFunc(u.excludedBatches(), func(id string) bool { return slices.Contains(was, id) })
		return nil
	})
	return left, err
}

// Include reverses Exclude.
func (b *Tracker) Include(ctx context.Context, unit, batch, by string) error {
	return b.changeExclusions(ctx, unit, by, func(u *Unit, x *exclusions) error {
		own, excluded := x.Batches[batch]
		switch is, known := u.Batch(batch); {
		case batch == "" && x.Unit == nil:
			return refused("include "+unit, "exclude it to leave it out of runs", "it is not excluded")
		case batch == "":
			x.Unit = nil
		case known && is.Excluded == nil || !known && !excluded:
			return refused("include "+unit+"/"+batch, "exclude it to leave it out of runs", "it is not excluded")
		case !excluded || known && own.Batch != is.Digest:
			return refused("include "+unit+"/"+batch, "include that first", "it is excluded because %s", is.Excluded.Reason)
		default:
			delete(x.Batches, batch)
		}
		return nil
	})
}

// excludedBatches lists the excluded batches by id.
func (u *Unit) excludedBatches() (ids []string) {
	for _, b := range u.Batches {
		if b.Excluded != nil {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// changeExclusions changes the exclusions of a unit for a named person.
func (b *Tracker) changeExclusions(ctx context.Context, unit, by string, change func(*Unit, *exclusions) error) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		x := exclusions{Batches: map[string]batchExclusion{}}
		stored := u.docs.excluded.stored
		if is := u.docs.excluded.value; is != nil {
			x.Unit = is.Unit
			maps.Copy(x.Batches, is.Batches)
		}
		if err := change(u, &x); err != nil {
			return err
		}
		if x.Unit == nil && len(x.Batches) == 0 {
			return stored.remove(ctx)
		}
		return b.write(ctx, stored, x, by)
	})
}
