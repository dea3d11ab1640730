package lock

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Processes judges and ends processes. Without it, only leases count.
type Processes interface {
	Liveness(lockkeeper.Process) lockkeeper.Liveness
	// Exited returns a channel that is closed when the process is gone. If the process
	// cannot be watched, the channel stays open.
	Exited(context.Context, lockkeeper.Process) <-chan struct{}
	// EndLeftovers ends the processes that a dead holder left, and returns when they are
	// gone.
	EndLeftovers(ctx context.Context, p lockkeeper.Process, grantID string) error
	// EndWork ends the processes that a live holder runs under a grant, but not the
	// holder, and returns when they are gone.
	EndWork(ctx context.Context, p lockkeeper.Process, grantID string) error
}

// Options configures a Manager. The zero value is ready to use.
type Options struct {
	Policies  map[string]lockkeeper.Policy // default: the built-in ones
	Processes Processes                    // default: none, leases alone count
	Self      *lockkeeper.Process          // recorded for requests of this process while they wait

	// WaitLease is how long a request stays in the wait list after its waiter died. A
	// waiter renews its request, and checks its blockers, three times in that period.
	// Default 15 s.
	WaitLease time.Duration

	// RecoverLandings completes or rolls back the landings that are open under a grant,
	// so that its paths can be given to another holder. The manager calls it outside of
	// transactions. Without it, a grant with an open landing is never freed.
	RecoverLandings func(ctx context.Context, grantID string) error

	// KeepFor and KeepEvents bound the event log. Defaults: 30 days, 1,000,000
	// events; the memory store keeps fewer.
	KeepFor    time.Duration
	KeepEvents int
}

// Manager acquires, keeps and releases the locks of one space.
type Manager struct {
	store    store.Store
	fastPath store.FastPath // nil if the store has none
	opt      Options

	txs sync.Pool // of *Tx

	ctx   context.Context // ends with Close
	close context.CancelCauseFunc
	owned sync.WaitGroup // keepers and reaper
}

// New returns a manager of the locks in a store. The caller closes the store after the
// manager.
func New(st store.Store, opt Options) *Manager {
	if opt.Policies == nil {
		opt.Policies = lockkeeper.Policies()
	}
	if opt.WaitLease <= 0 {
		opt.WaitLease = 15 * time.Second
	}
	if opt.KeepFor <= 0 {
		opt.KeepFor = 30 * 24 * time.Hour
	}
	if opt.KeepEvents <= 0 {
		opt.KeepEvents = 1_000_000
	}
	m := &Manager{store: st, opt: opt}
	m.fastPath, _ = st.(store.FastPath)
	m.ctx, m.close = context.WithCancelCause(context.Background())
	return m
}

// Close stops the keepers and the reaper and waits for them. Grants stay held until their
// leases expire; a caller with id and token can release them.
func (m *Manager) Close() error {
	m.close(fmt.Errorf("lock manager closed"))
	m.owned.Wait()
	return nil
}

// Check refuses a request that could never be granted.
func (m *Manager) Check(req lockkeeper.Request) error {
	_, _, err := m.prepare(req)
	return err
}

// prepare checks a request and returns its record and token.
func (m *Manager) prepare(req lockkeeper.Request) (*store.Record, string, error) {
	policy, err := m.Policy(req.Policy)
	if err != nil {
		return nil, "", err
	}
	switch {
	case req.Holder == "" || strings.TrimSpace(req.Holder) != req.Holder || len(req.Holder) > 200 || strings.ContainsFunc(req.Holder, isControl):
		return nil, "", &lockkeeper.InputError{Field: "holder", Value: req.Holder, Reason: "empty, too long, with control characters or with space around it", Next: "name the holder in up to 200 printable characters"}
	case req.TTL < 0:
		return nil, "", &lockkeeper.InputError{Field: "ttl", Value: req.TTL.String(), Reason: "negative", Next: "give a positive duration, or none for the policy's own"}
	case req.TTL > maxTTL:
		return nil, "", &lockkeeper.InputError{Field: "ttl", Value: req.TTL.String(), Reason: "over ten years", Next: "give a shorter duration, or use a policy that never expires"}
	}
	if err := lockkeeper.CheckCount(len(req.Locks)); err != nil { // checked before the locks are copied
		return nil, "", err
	}
	// The locks are copied, because the caller may reuse its slice while they are held. The copy is
	// checked after Normalize, which can merge two permitted locks into a write lock on a
	// directory.
	locks := lockkeeper.Normalize(slices.Clone(req.Locks))
	if err := checkLocks(req.Holder, policy, locks); err != nil {
		return nil, "", err
	}
	ttl := cmp.Or(req.TTL, policy.TTL)
	if req.Kept {
		if ttl = cmp.Or(req.TTL, policy.KeptTTL()); ttl > 0 && ttl < ShortestKept {
			return nil, "", &lockkeeper.InputError{Field: "ttl", Value: ttl.String(), Reason: "too short to stop the work before it ends if the store cannot be reached",
				Next: "give at least " + ShortestKept.String()}
		}
	}
	id, token := newSecrets()
	rec := &store.Record{
		Grant: lockkeeper.Grant{
			ID: id, Space: m.store.Space(), Holder: req.Holder, Policy: policy.Name,
			Locks: locks, Process: clone(req.Process), Metadata: maps.Clone(req.Metadata),
		},
		TokenHash: hashToken(token),
		TTL:       ttl,
	}
	return rec, token, nil
}

// maxTTL keeps sums of instants far from overflow. A grant that never expires needs a
// policy that says so.
const maxTTL = 10 * 365 * 24 * time.Hour

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }

// policyOf returns the policy of a stored record. A policy that this program does not know
// frees nothing automatically: a newer program may know its rules.
func (m *Manager) policyOf(name string) lockkeeper.Policy {
	if p, ok := m.opt.Policies[name]; ok {
		return p
	}
	return lockkeeper.Policy{Name: name, Stale: lockkeeper.Ask, Dead: lockkeeper.DeadShown}
}

// Policy returns the policy with a name; the default one if the name is empty.
func (m *Manager) Policy(name string) (lockkeeper.Policy, error) {
	name = cmp.Or(name, lockkeeper.DefaultPolicy)
	p, ok := m.opt.Policies[name]
	if !ok {
		return p, &lockkeeper.InputError{Field: "policy", Value: name, Reason: "unknown policy", Next: "use one of " + lockkeeper.PolicyNames(m.opt.Policies)}
	}
	return p, nil
}

func checkLocks(holder string, policy lockkeeper.Policy, locks []lockkeeper.Lock) error {
	if err := lockkeeper.ValidateAll(locks); err != nil {
		return err
	}
	for _, l := range locks {
		if l.Mode == lockkeeper.Read {
			continue
		}
		if l.Kind.IsTree() && !policy.TreeWrites {
			return &lockkeeper.OverLockError{Holder: holder, Path: l.Path, Policy: policy.Name}
		}
		if l.Mode == lockkeeper.Upgradeable && !policy.Upgrade {
			return &lockkeeper.RefusedError{Act: "upgradeable " + l.Path, Reason: fmt.Sprintf("policy %q does not allow changes to the locks of a grant", policy.Name),
				Next: "ask for write, or use policy dal"}
		}
	}
	return nil
}

// newSecrets returns a random UUID (version 4) and a secret token.
func newSecrets() (id, token string) {
	var b [32]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[:8], b[:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:]), hex.EncodeToString(b[16:])
}

// validID refuses an id that newSecrets cannot have returned.
func validID(id string) error {
	ok := len(id) == 36
	for i := 0; ok && i < len(id); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			ok = id[i] == '-'
		} else {
			ok = '0' <= id[i] && id[i] <= '9' || 'a' <= id[i] && id[i] <= 'f'
		}
	}
	if !ok {
		return &lockkeeper.InputError{Field: "grant", Value: id, Reason: "not a grant id", Next: "copy the id from `lockkeeper status`"}
	}
	return nil
}

func hashToken(token string) [32]byte { return sha256.Sum256([]byte(token)) }
