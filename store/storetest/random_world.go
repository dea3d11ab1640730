package storetest

import (
	"time"

	"lockkeeper"
)

func (r *run) advance() touched {
	d := []time.Duration{time.Second, 4 * time.Second, 15 * time.Second, 40 * time.Second, 31 * time.Minute}[r.rnd.IntN(5)]
	if r.rnd.IntN(4) == 0 {
		r.clock.JumpWall(time.Duration(r.rnd.IntN(7)-3) * time.Hour)
	}
	r.note("advance %v", d)
	r.clock.Advance(d)
	r.model.now = r.clock.Now().Lease
	return touched{}
}

func (r *run) recover() touched {
	r.note("recover")
	_, err := r.m.Recover(r.ctx)
	r.answers(err, "")
	return touched{sweeps: true}
}

func (r *run) force() touched {
	if len(r.model.recs) == 0 {
		return touched{}
	}
	rec := r.model.recs[r.rnd.IntN(len(r.model.recs))]
	actor := lockkeeper.Actor{Name: "x", Kind: []lockkeeper.ActorKind{lockkeeper.ActorPerson, lockkeeper.ActorAdmin, lockkeeper.ActorAgent}[r.rnd.IntN(3)]}
	r.note("force %s by %s", name(rec), actor.Kind)
	want := lockkeeper.Code("")
	if actor.Kind == lockkeeper.ActorAgent || rec.Policy == "dal" && !r.model.stale(rec) {
		want = lockkeeper.CodeRefused
	}
	r.answers(r.m.ForceRelease(r.ctx, rec.ID, actor, "torture"), want)
	return touched{id: rec.ID, freed: want == ""}
}
