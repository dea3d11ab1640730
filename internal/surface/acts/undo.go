package acts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
)

// Hold does work under a grant that holds paths for writing. A path with a slash at the end is a
// directory with everything below it.
type Hold func(ctx context.Context, reason string, paths []string, work func(context.Context, *lockkeeper.Grant) error) error

// ownTTL is the lease of a grant that an act acquires. It is renewed during the act.
const ownTTL = time.Minute

// Holding acquires the locks for a short act, and releases them after it. It does not wait:
// a conflict is a *lockkeeper.BlockedError.
func Holding(a *project.Project, by lockkeeper.Actor) Hold {
	return Taking(by.Name, func(ctx context.Context, req lockkeeper.Request) (*lock.Grant, error) { return a.Hold(ctx, req, 0) })
}

// Taking runs the function work under a grant that the function take acquires, and releases it
// after the work.
func Taking(holder string, take func(context.Context, lockkeeper.Request) (*lock.Grant, error)) Hold {
	return func(ctx context.Context, reason string, paths []string, work func(context.Context, *lockkeeper.Grant) error) (err error) {
		self, err := process.Self()
		if err != nil {
			return err
		}
		req := lockkeeper.Request{Holder: holder, TTL: ownTTL, Process: &self, Metadata: map[string]string{"reason": reason}}
		for _, path := range paths {
			l := lockkeeper.Lock{Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
			if dir, is := strings.CutSuffix(path, "/"); is {
				l.Path, l.Kind, req.Policy = dir, lockkeeper.Dir, "dal" // the default policy locks files only
			}
			req.Locks = append(req.Locks, l)
		}
		g, err := take(ctx, req)
		if err != nil {
			return err
		}
		// Most acts end long before the lease needs renewal. A keeper from the start would
		// often race with the release and record a failed renewal.
		keeper := time.AfterFunc(ownTTL/3, g.Keep)
		defer func() {
			keeper.Stop()
			err = errors.Join(err, g.Release(context.WithoutCancel(ctx)))
		}()
		return work(ctx, &g.Grant)
	}
}

// Undone is the result of an undo.
type Undone struct {
	Landings []*lockkeeper.Landing `json:"landings"` // the new landings
	Paths    []string              `json:"paths"`
	Of       *lockkeeper.Landing   `json:"of,omitempty"`    // the named landing, if any
	Batch    *UndoneBatch          `json:"batch,omitempty"` // nil: the landing belongs to no batch
}

type UndoneBatch struct {
	Flow   string   `json:"flow"`
	Unit   string   `json:"unit"`
	ID     string   `json:"id"`
	Undone bool     `json:"undone"`           // all landings of the batch are undone, and its documents say so
	Partly bool     `json:"partly"`           // some landings of the batch are undone, and some remain
	Left   []uint64 `json:"left"`             // the landings that remain
	Commit string   `json:"commit,omitempty"` // git commit, which is not reverted
}

func (b UndoneBatch) Name() string { return b.Unit + "/" + b.ID }

// UndoBatch undoes the landings of a batch, last first, under one grant. It skips landings
// that are undone already.
func (d *Decider) UndoBatch(ctx context.Context, unit, batch string, hold Hold) (*Undone, error) {
	ref := reviewOf(unit, batch)
	u, err := d.need(ctx, ref)
	if err != nil {
		return nil, err
	}
	g, err := d.App.Gate()
	if err != nil {
		return nil, err
	}
	b, _ := u.Batch(batch)
	if err := d.mayUndo(ctx, g, unit, b); err != nil {
		return nil, err
	}
	out := &Undone{Landings: []*lockkeeper.Landing{}, Batch: &UndoneBatch{Flow: d.Flow.Name, Unit: unit, ID: batch, Undone: true, Left: []uint64{}, Commit: b.Landed.Commit}}
	if out.Paths, err = pathsOf(ctx, g, b.Landed.Landings); err != nil {
		return nil, err
	}
	err = hold(ctx, "undo "+out.Batch.Name(), out.Paths, func(ctx context.Context, grant *lockkeeper.Grant) error {
		for _, seq := range slices.Backward(b.Landed.Landings) {
			by, err := g.UndoneBy(ctx, seq)
			if err != nil {
				return err
			}
			if by != 0 {
				continue
			}
			back, err := g.Undo(ctx, grant, seq)
			if err != nil {
				return err
			}
			out.Landings = append(out.Landings, back)
		}
		return d.Tracker.PutUndone(ctx, unit, batch, d.By.Name)
	})
	if err != nil {
		return nil, err
	}
	return out, d.tell(ctx, []Done{{Ref: ref, What: "is undone"}})
}

// mayUndo refuses a batch without a landing in the tree.
func (d *Decider) mayUndo(ctx context.Context, g *gate.Gate, unit string, b *progress.Batch) error {
	name := unit + "/" + b.ID
	refuse := func(reason, next string) error {
		return &lockkeeper.RefusedError{Act: "undo " + name, Reason: reason, Next: next}
	}
	switch {
	case b.Landed == nil:
		return refuse("it is "+b.Status+", and none of its landings is in the tree", d.Command("decide", "show", "review", name)+"; single landings have numbers: lockkeeper audit --kind landed")
	case b.Landed.Undone == nil:
		return nil
	}
	var back []string
	for _, seq := range b.Landed.Landings {
		by, err := g.UndoneBy(ctx, seq)
		if err != nil {
			return err
		}
		if by != 0 {
			back = append(back, fmt.Sprintf("lockkeeper undo %d", by))
		}
	}
	next := d.RedoCommand(name)
	if len(back) > 0 {
		next += ", or, to restore it: " + strings.Join(back, ", ")
	}
	return refuse("it was undone by "+b.Landed.Undone.By+" at "+stamp(b.Landed.Undone.At), next)
}

func (d *Decider) RedoCommand(name string) string {
	return d.Command("decide", "redo", name, d.Flow.FirstOfBatch())
}

func pathsOf(ctx context.Context, g *gate.Gate, landings []uint64) (paths []string, err error) {
	for _, seq := range landings {
		l, err := g.Landing(ctx, seq)
		if err != nil {
			return nil, err
		}
		for _, c := range l.Changes {
			if !slices.Contains(paths, c.Path) {
				paths = append(paths, c.Path)
			}
		}
	}
	return paths, nil
}

// UndoLanding undoes a landing, and updates the documents of its batch if it has one. Only a person
// undoes a landing of a batch, because that decides about the batch.
func UndoLanding(ctx context.Context, a *project.Project, seq uint64, by Changer, hold Hold) (*Undone, error) {
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	out := &Undone{}
	if out.Of, err = g.Landing(ctx, seq); err != nil {
		return nil, err
	}
	for _, c := range out.Of.Changes {
		out.Paths = append(out.Paths, c.Path)
	}
	if d, unit, batch, err := batchOf(ctx, a, g, seq, by.Actor); err != nil {
		return nil, err
	} else if d != nil && by.Kind == lockkeeper.ActorAgent {
		return nil, &lockkeeper.RefusedError{Act: fmt.Sprintf("undo of landing %d", seq), Reason: "it belongs to batch " + unit + "/" + batch.ID + ", about which only a person decides",
			Next: "ask a person to run it in their own terminal"}
	}
	if err := by.mayChange(ctx, fmt.Sprintf("undo of landing %d", seq), out.Of.GrantID, out.Of.Holder, out.Of.At); err != nil {
		return nil, err
	}
	locked := out.Paths
	if dir := gate.Replaced(out.Of); dir != "" { // the gate prepares the replacement beside the directory
		parent, _ := lockkeeper.Parent(dir)
		locked = []string{parent + "/"}
	}
	err = hold(ctx, fmt.Sprintf("undo landing %d", seq), locked, func(ctx context.Context, grant *lockkeeper.Grant) error {
		back, err := g.Undo(ctx, grant, seq)
		out.Landings = []*lockkeeper.Landing{back}
		return err
	})
	if err != nil {
		return nil, err
	}
	d, unit, batch, err := batchOf(ctx, a, g, seq, by.Actor) // the batch as it is now
	if d != nil && err == nil {
		out.Batch, err = d.noteBatch(ctx, g, unit, batch)
	}
	if err != nil {
		return out, fmt.Errorf("landing %d undoes landing %d, but the documents of its batch could not be updated: %w", out.Landings[0].Seq, seq, err)
	}
	return out, nil
}

// batchOf returns the batch of a landing, or of the landing that it undoes, with its unit; nil:
// it has no batch.
func batchOf(ctx context.Context, a *project.Project, g *gate.Gate, seq uint64, by lockkeeper.Actor) (*Decider, string, *progress.Batch, error) {
	for { // an undo can itself be undone
		l, err := g.Landing(ctx, seq)
		if err != nil {
			return nil, "", nil, err
		}
		if l.Undoes == 0 {
			break
		}
		seq = l.Undoes
	}
	for _, f := range flow.All() {
		d, err := Open(ctx, a, f.Name, by)
		if err != nil {
			return nil, "", nil, err
		}
		for _, unit := range d.Units {
			u, err := d.Tracker.Unit(ctx, unit)
			if err != nil {
				return nil, "", nil, err
			}
			for i := range u.Batches {
				if l := u.Batches[i].Landed; l != nil && slices.Contains(l.Landings, seq) {
					return d, unit, &u.Batches[i], nil
				}
			}
		}
	}
	return nil, "", nil, nil
}

// noteBatch records in the documents of a batch whether it is undone.
func (d *Decider) noteBatch(ctx context.Context, g *gate.Gate, unit string, b *progress.Batch) (*UndoneBatch, error) {
	out := &UndoneBatch{Flow: d.Flow.Name, Unit: unit, ID: b.ID, Left: []uint64{}, Commit: b.Landed.Commit}
	for _, seq := range b.Landed.Landings {
		by, err := g.UndoneBy(ctx, seq)
		if err != nil {
			return nil, err
		}
		if by == 0 {
			out.Left = append(out.Left, seq)
		}
	}
	out.Undone = len(out.Left) == 0
	out.Partly = !out.Undone && len(out.Left) < len(b.Landed.Landings)
	what, err := "", error(nil)
	switch {
	case out.Undone && b.Landed.Undone == nil:
		what, err = "is undone", d.Tracker.PutUndone(ctx, unit, b.ID, d.By.Name)
	case !out.Undone && b.Landed.Undone != nil:
		what, err = "is back", d.Tracker.ClearUndone(ctx, unit, b.ID, d.By.Name)
	default:
		return out, nil
	}
	if err != nil {
		return out, err
	}
	return out, d.tell(ctx, []Done{{Ref: reviewOf(unit, b.ID), What: what}})
}

// stamp formats a time for people. A document written by hand has no time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}
