package lockkeeper

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// StaleAct says what happens to a grant whose lease has expired.
type StaleAct uint8

// These are the acts. The transaction that frees a grant records who freed it, why, and which
// conditions were checked.
const (
	// Reap frees the grant when it expires. It blocks no request after that.
	Reap StaleAct = iota
	// RecoverUnclaimed frees the grant if four conditions hold: the lease has expired, the last
	// heartbeat is older than the grace period, the holder's process is not alive, and the audit
	// record is written.
	RecoverUnclaimed
	// Break lets the next request free the grant after the lease and the grace period.
	Break
	// Ask lets only a person free the grant.
	Ask
)

// DeadAct says what happens if the holder's process is dead.
type DeadAct uint8

const (
	DeadFrees     DeadAct = iota // the grant is freed
	DeadCondition                // the death is one of the four conditions of RecoverUnclaimed
	DeadIgnored                  // nothing happens
	DeadShown                    // the death is shown to the person who decides
)

// ExtendRule says whether a grant may grow.
type ExtendRule uint8

const (
	ExtendNever   ExtendRule = iota
	ExtendByTry              // a grant can gain locks that are free now
	ExtendInOrder            // a grant can gain targets that come after all its targets in the global order
)

// A Policy sets the time limits and permissions of the grants of one kind of user.
type Policy struct {
	Name       string
	TTL        time.Duration // 0: the grant never expires
	Grace      time.Duration
	Heartbeat  time.Duration // how often a supervisor renews; 0: never
	Stale      StaleAct
	Dead       DeadAct
	TreeWrites bool // false: writing a directory or subtree is an OverLockError
	Upgrade    bool
	Extend     ExtendRule
	Operation  bool // the grant is held for one operation, and never while its holder waits
}

// KeptTTL returns the lease of a grant that a live process renews. It lasts three heartbeats, and at least a
// minute, so that a machine that disappears does not block others for long.
func (p Policy) KeptTTL() time.Duration {
	if p.TTL <= 0 || p.Heartbeat <= 0 {
		return p.TTL
	}
	return min(p.TTL, max(3*p.Heartbeat, time.Minute))
}

// Policies returns the built-in policies by name. The map is the caller's.
func Policies() map[string]Policy {
	list := []Policy{
		{Name: "agent", TTL: 30 * time.Minute, Heartbeat: time.Minute},
		{Name: "session", TTL: 15 * time.Minute, Heartbeat: time.Minute, Extend: ExtendByTry},
		{Name: "dal", TTL: 45 * time.Second, Grace: 30 * time.Second, Heartbeat: 10 * time.Second,
			Stale: RecoverUnclaimed, Dead: DeadCondition, TreeWrites: true, Upgrade: true, Extend: ExtendInOrder, Operation: true},
		{Name: "tidy", TTL: 1800 * time.Second, Grace: 120 * time.Second, Heartbeat: 5 * time.Minute,
			Stale: Break, Dead: DeadIgnored, TreeWrites: true},
		{Name: "author", TTL: 15 * time.Minute, Heartbeat: time.Minute, Stale: Ask, Dead: DeadShown, TreeWrites: true},
		{Name: "person", Stale: Ask, Dead: DeadShown, TreeWrites: true},
	}
	m := make(map[string]Policy, len(list))
	for _, p := range list {
		m[p.Name] = p
	}
	return m
}

// DefaultPolicy is the policy of a request that names none.
const DefaultPolicy = "agent"

// PolicyNames lists the names in a set of policies, sorted, for messages.
func PolicyNames(set map[string]Policy) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}
