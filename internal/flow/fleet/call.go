package fleet

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"lockkeeper/store"
)

// A Call is one run of an agent, or of a check command, that any machine may carry out.
type Call struct {
	ID      string    `json:"id"`
	Run     string    `json:"run"`
	Item    string    `json:"item"`
	Purpose string    `json:"purpose"` // identifies the call: see package run
	Work    string    `json:"work"`    // the unit, or unit/batch
	Phase   string    `json:"phase"`
	Need    Need      `json:"need"`
	Base    string    `json:"base"` // the parcel with the tree and the request
	State   State     `json:"state"`
	Machine string    `json:"machine,omitempty"` // the id of the machine that claimed it
	Name    string    `json:"name,omitempty"`    // its name
	Fence   uint64    `json:"fence,omitempty"`   // the version of the claim
	Offered time.Time `json:"offered"`
	Began   time.Time `json:"began,omitzero"`
	Tries   int       `json:"tries"`            // how often it was claimed
	Result  string    `json:"result,omitempty"` // the parcel with what the machine did
	Refused string    `json:"refused,omitempty"`
	Avoid   []string  `json:"avoid,omitempty"` // machines that could not begin it

	version uint64
	left    time.Duration
}

// A State says where a call is.
type State string

// The states of a call.
const (
	Queued  State = "queued"
	Claimed State = "claimed"
	Done    State = "done"
)

// NewCallID returns the id of a new call.
func NewCallID() string { return "c" + rand.Text()[:16] }

// Offer queues a call.
func (f *Fleet) Offer(ctx context.Context, c *Call) error {
	c.State, c.Offered = Queued, time.Now().UTC()
	version, err := f.put(ctx, callKind, c.ID, 0, 0, c)
	if err == nil && version == 0 {
		err = errLost("a call "+c.ID+" exists", "")
	}
	c.version = version
	return err
}

// Calls lists the calls of the space, the oldest first.
func (f *Fleet) Calls(ctx context.Context) (list []Call, err error) {
	err = read(ctx, f, callKind, func(p store.Post, c Call) {
		c.version, c.left = p.Version, p.Left
		if c.State == Claimed && c.Fence == 0 {
			c.Fence = p.Version // it was not renewed yet
		}
		list = append(list, c)
	})
	slices.SortStableFunc(list, func(a, b Call) int { return a.Offered.Compare(b.Offered) })
	return list, err
}

// Claim takes a queued call for a machine. It returns false if another one was faster.
func (f *Fleet) Claim(ctx context.Context, c *Call, m *Machine) (bool, error) {
	next := *c
	next.State, next.Machine, next.Name, next.Began, next.Fence = Claimed, m.ID, m.Name, time.Now().UTC(), 0
	next.Tries++
	version, err := f.put(ctx, callKind, c.ID, c.version, Lease, next)
	if err != nil || version == 0 {
		return false, err
	}
	next.version, next.Fence = version, version
	*c = next
	return true, nil
}

// Renew extends a claim. It returns false if the call belongs to another machine, or to none, now.
func (f *Fleet) Renew(ctx context.Context, c *Call) (bool, error) {
	return f.replace(ctx, c, Lease, *c)
}

// Finish stores the result of a claimed call. It returns false, and changes nothing, if the call
// was given to another machine meanwhile.
func (f *Fleet) Finish(ctx context.Context, c *Call, result string) (bool, error) {
	next := *c
	next.State, next.Result = Done, result
	return f.replace(ctx, c, 0, next)
}

// Return puts a claimed call back into the queue. The machine does not take it again.
func (f *Fleet) Return(ctx context.Context, c *Call, why string) (bool, error) {
	next := *c
	next.Avoid = append(slices.Clone(c.Avoid), c.Machine)
	next.State, next.Machine, next.Name, next.Fence, next.Refused = Queued, "", "", 0, why
	return f.replace(ctx, c, 0, next)
}

// Expire returns a call to the queue if its claim was not renewed in time.
func (f *Fleet) Expire(ctx context.Context, c *Call) (bool, error) {
	if c.State != Claimed || c.left > 0 {
		return false, nil
	}
	next := *c
	next.State, next.Machine, next.Name, next.Fence, next.Refused = Queued, "", "", 0, "machine "+c.Name+" disappeared"
	return f.replace(ctx, c, 0, next)
}

// Withdraw removes a call that no machine has claimed. It returns false if one has.
func (f *Fleet) Withdraw(ctx context.Context, c *Call) (bool, error) {
	if c.State != Queued {
		return false, nil
	}
	return f.board.Drop(ctx, callKind, c.ID, c.version)
}

// Forget removes a call in any state. A machine that works on it notices with its next renewal.
func (f *Fleet) Forget(ctx context.Context, c *Call) (bool, error) {
	return f.board.Drop(ctx, callKind, c.ID, c.version)
}

func (f *Fleet) replace(ctx context.Context, c *Call, ttl time.Duration, next Call) (bool, error) {
	version, err := f.put(ctx, callKind, c.ID, c.version, ttl, next)
	if err == nil && version == 0 {
		version, err = f.again(ctx, c, ttl, next)
	}
	if err != nil || version == 0 {
		return false, err
	}
	next.version, next.left = version, ttl
	*c = next
	return true, nil
}

// again replaces a call if it changed only because the answer to an earlier change of this process
// was lost: the claim is still the same.
func (f *Fleet) again(ctx context.Context, c *Call, ttl time.Duration, next Call) (uint64, error) {
	all, err := f.Calls(ctx)
	at := slices.IndexFunc(all, func(other Call) bool { return other.ID == c.ID })
	switch {
	case err != nil || at < 0 || c.Fence == 0 || all[at].Fence != c.Fence || all[at].Machine != c.Machine:
		return 0, err
	case all[at].State == next.State && all[at].Result == next.Result && next.State == Done:
		return all[at].version, nil
	}
	return f.put(ctx, callKind, c.ID, all[at].version, ttl, next)
}
