package fleet

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"lockkeeper/store"
)

// A Run is the run of the space that is conducted, or was conducted last.
type Run struct {
	ID      string    `json:"id"`
	Flow    string    `json:"flow"`
	Plan    string    `json:"plan,omitempty"`     // the plan file on the conductor
	PlanSum string    `json:"plan_sum,omitempty"` // the SHA-256 of its content
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Machine string    `json:"machine"` // the id of the machine that conducts
	Name    string    `json:"name"`    // its name
	Root    string    `json:"root"`
	Site    string    `json:"site"` // the id of the conductor's copy of the tree
	Grant   string    `json:"grant"`
	Failure string    `json:"failure,omitempty"` // why conducting it ended early

	State json.RawMessage `json:"state,omitempty"` // the outcome so far, for people: run.Outcome

	Documents string `json:"documents,omitempty"` // the commit with documents and calls, for another conductor; empty: there is none
	Ref       string `json:"ref,omitempty"`       // of that commit, at the git remote

	Earlier []string `json:"earlier,omitempty"` // the sites that conducted the run before

	version uint64
	left    time.Duration
}

// currentRun is the key of the only run of a space.
const currentRun = "current"

// Run returns the run of the space, or nil if there was none.
func (f *Fleet) Run(ctx context.Context) (r *Run, err error) {
	err = read(ctx, f, runKind, func(p store.Post, v Run) {
		v.version, v.left = p.Version, p.Left
		r = &v
	})
	return r, err
}

// Lives reports whether a machine conducts the run.
func (r *Run) Lives() bool { return r.Ended.IsZero() && r.left > 0 }

// PutRun stores what the conductor says about its run, as a lease. The conductor's own lock keeps
// every other machine from conducting; PutRun returns false if one does nevertheless.
func (f *Fleet) PutRun(ctx context.Context, r *Run) (bool, error) {
	version, err := f.put(ctx, runKind, currentRun, r.version, Lease, r)
	if err != nil || version == 0 {
		return false, err
	}
	r.version, r.left = version, Lease
	return true, nil
}

// TakeRun replaces the run of the space by that of a machine that began to conduct. Its version
// fences what an earlier conductor still writes.
func (f *Fleet) TakeRun(ctx context.Context, r *Run) error {
	for {
		last, err := f.Run(ctx)
		if err != nil {
			return err
		}
		if r.version = 0; last != nil {
			r.version = last.version
			if last.ID == r.ID {
				r.Documents, r.Ref, r.Earlier = last.Documents, last.Ref, last.Earlier
				if last.Site != r.Site && !slices.Contains(r.Earlier, last.Site) {
					r.Earlier = append(slices.Clone(r.Earlier), last.Site)
				}
			}
		}
		if ok, err := f.PutRun(ctx, r); ok || err != nil {
			return err
		}
	}
}
