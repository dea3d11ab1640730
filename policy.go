package lockkeeper

import (
	"slices"
	"strings"
	"time"
)

// StaleAct is what becomes of a grant whose lease has run out.
type StaleAct uint8

// The stale acts. Each writes who, when, why and which conditions were checked,
// in the transaction that frees the grant.
const (
	// Reap frees the grant at its expiry; it blocks nobody after it.
	Reap StaleAct = iota
	// RecoverUnclaimed frees it when four conditions hold: the lease is past, the
	// heartbeat is older than the grace period, no live holder claims it, and the
	// audit record is written.
	RecoverUnclaimed
	// Break lets the next acquirer free it once the lease and the grace are past.
	Break
	// Ask leaves it to a person.
	Ask
)

// DeadAct is what the death of the holder's process means.
type DeadAct uint8

// The acts on a dead process.
const (
	DeadFrees     DeadAct = iota // the grant is freed at once
	DeadCondition                // it is one of the four conditions
	DeadIgnored                  // nothing
	DeadShown                    // a line for the person who is asked
)

// ExtendRule says whether a grant may grow.
type ExtendRule uint8

// The extend rules.
const (
	ExtendNever   ExtendRule = iota
	ExtendByTry              // by anything free now
	ExtendInOrder            // only by targets after all it holds in the global order
)

// Policy sets the numbers and permissions of one kind of user.
type Policy struct {
	Name       string
	TTL        time.Duration // 0: the grant never expires
	Grace      time.Duration
	Heartbeat  time.Duration // how often a supervisor renews; 0: nobody does
	Stale      StaleAct
	Dead       DeadAct
	TreeWrites bool // false: writing a directory or subtree is an OverLockError
	Upgrade    bool
	Extend     ExtendRule
	Operation  bool // it is held for one operation, and never while its holder waits for something
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
	names := make([]string, 0, len(set))
	for n := range set {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
