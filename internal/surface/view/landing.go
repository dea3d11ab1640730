package view

import (
	"cmp"
	"context"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/store"
)

// LandingDetail is a landing with its diff, the tests of its batch, and what happened to it since.
type LandingDetail struct {
	Moment
	Landed  Landing      `json:"landing"`
	Flow    string       `json:"flow,omitempty"` // the flow of its batch
	Item    string       `json:"item,omitempty"` // the item that landed it
	Detail  *BatchDetail `json:"detail,omitempty"`
	Diff    *Diff        `json:"diff"`
	GrantID string       `json:"grant_id"`
	Later   []Landing    `json:"later"` // later landings of its files, the newest first
}

// laterShown limits the later landings of a LandingDetail.
const laterShown = 20

// Landing returns a landing with its diff.
func (rd *Reader) Landing(ctx context.Context, seq uint64) (*LandingDetail, error) {
	v := &LandingDetail{Diff: &Diff{Files: []FileDiff{}}, Later: []Landing{}}
	var found, later []*lockkeeper.Landing
	known := names{}
	var err error
	v.Moment, err = rd.at(ctx, func(r store.Reader) (err error) {
		later = nil
		if found, err = r.Landings(store.LandingQuery{Seq: seq, Limit: 1}); err != nil || len(found) == 0 {
			return err
		}
		for _, c := range found[0].Changes {
			list, err := r.Landings(store.LandingQuery{Path: c.Path, After: seq, Limit: laterShown})
			if err != nil {
				return err
			}
			later = merged(later, list)
		}
		return known.landers(r, append(later, found[0]))
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Seq != seq {
		return nil, &lockkeeper.InputError{Field: "landing", Value: itoa(seq), Reason: "no landing has this number", Next: "lockkeeper audit --kind landed"}
	}
	list, err := rd.landings(ctx, append(found[:1:1], later...), known)
	if err != nil {
		return nil, err
	}
	v.Landed, v.Later = list[0], list[1:]
	v.GrantID, v.Item = found[0].GrantID, found[0].Holder
	if rd.NameOfItem(v.Item) == "" {
		v.Item = ""
	}
	return v, rd.addChanges(ctx, v, found[0])
}

// addChanges adds the diff of a landing, and its batch.
func (rd *Reader) addChanges(ctx context.Context, v *LandingDetail, ln *lockkeeper.Landing) error {
	p, err := rd.lastDocuments(ctx)
	if err != nil {
		return err
	}
	if u, b, ok := p.batch(v.Landed.Unit, v.Landed.Batch); ok {
		open, err := rd.openItems(ctx, p.flow.Name)
		if err != nil {
			return err
		}
		detail := batchDetail(u.Unit, b, stateOf(p.state(u, open[u.name]), b))
		v.Flow, v.Detail = p.flow.Name, &detail
	}
	for n, c := range ln.Changes {
		text, note, err := acts.LandingDifference(ctx, rd.project, p.tracker, ln, n, v.Landed.Unit, v.Landed.Batch)
		if err != nil {
			return err
		}
		v.Diff.add(c.Path, c.Old.Exists(), c.New.Exists(), text, note)
	}
	return nil
}

// batch returns a batch of a unit that can be read.
func (p *documents) batch(unit, id string) (*unit, *progress.Batch, bool) {
	u, known := p.find(unit)
	if !known || u.Unit == nil {
		return nil, nil, false
	}
	b, known := u.Batch(id)
	return u, b, known
}

// merged returns the landings of two lists, the newest first and each once.
func merged(a, b []*lockkeeper.Landing) []*lockkeeper.Landing {
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, func(x, y *lockkeeper.Landing) int { return cmp.Compare(y.Seq, x.Seq) })
	all = slices.CompactFunc(all, func(x, y *lockkeeper.Landing) bool { return x.Seq == y.Seq })
	return all[:min(len(all), laterShown)]
}
