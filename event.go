package lockkeeper

import "time"

// EventKind names what happened.
type EventKind string

// The events of the lock engine.
const (
	EventAcquired      EventKind = "acquired"       // a request became a grant
	EventDenied        EventKind = "denied"         // a request was refused without waiting; once per change of blockers
	EventWaiting       EventKind = "waiting"        // a request entered the wait list, or its blockers changed
	EventWithdrawn     EventKind = "withdrawn"      // a request left the wait list
	EventTimedOut      EventKind = "timed_out"      // a request left the wait list because its time limit passed
	EventRenewFailed   EventKind = "renew_failed"   // a heartbeat came for a grant that is gone
	EventUpgraded      EventKind = "upgraded"       // an upgradeable lock became a write lock
	EventUpgradeDenied EventKind = "upgrade_denied" // an upgrade was refused; the grant stays
	EventExtended      EventKind = "extended"       // a grant gained locks
	EventExtendDenied  EventKind = "extend_denied"  // an extension was refused; the grant stays
	EventReleased      EventKind = "released"       // a holder released its grant
	EventExpired       EventKind = "expired"        // a lease expired, and the policy frees such grants
	EventRecovered     EventKind = "recovered"      // a grant was freed after its holder was found dead
	EventForceReleased EventKind = "force_released" // a person or an administrator freed a grant
	EventRecoverFailed EventKind = "recover_failed" // a process that a dead holder started did not end
	EventRevoking      EventKind = "revoking"       // a grant was revoked; its paths are free once its open landings are complete
	EventLanded        EventKind = "landed"         // a landing was decided: it will be completed, even after a crash
	EventReplaced      EventKind = "replaced"       // a directory was replaced as a whole, and its landing is committed
	EventUndone        EventKind = "undone"         // a decided landing was rolled back
	EventGap           EventKind = "gap"            // a write was refused, and its new content is kept
	EventFinished      EventKind = "finished"       // recovery completed a landing that its writer had left
	EventCleared       EventKind = "cleared"        // the stage of a dead writer, without a decided landing, was removed
	EventQueued        EventKind = "queued"         // an item was queued
	EventBlocked       EventKind = "blocked"        // locks block an item; once per change of blockers
	EventEscalated     EventKind = "escalated"      // an item waited too long for locks or a slot, and moved ahead of others
	EventFailed        EventKind = "failed"         // an item failed
	EventRequeued      EventKind = "requeued"       // an item returned to the queue: by a person, or because its worker is gone
	EventDecided       EventKind = "decided"        // a person decided for a flow, or disabled the checks of sessions
	EventAsked         EventKind = "asked"          // a person asked the holder of a grant for a file
	EventRefused       EventKind = "refused"        // an actor tried something that it may not do
	EventEpoch         EventKind = "epoch"          // the space began a new epoch of fences
)

// ActorKind says what kind of actor did something.
type ActorKind string

// The kinds of actor. An agent may never force anything.
const (
	ActorHolder ActorKind = "holder" // the holder of the grant or request
	ActorPerson ActorKind = "person"
	ActorAdmin  ActorKind = "admin"
	ActorAgent  ActorKind = "agent"
	ActorSystem ActorKind = "system" // Lockkeeper itself: reaper, promotion, recovery
)

// An Actor is a person, an agent or a program that did something.
type Actor struct {
	Name string    `json:"name"`
	Kind ActorKind `json:"kind"`
}

// System returns the actor for Lockkeeper itself.
func System() Actor { return Actor{Name: "lockkeeper", Kind: ActorSystem} }

// A Condition is one fact that is checked before a grant is freed.
type Condition struct {
	Name string `json:"name"`
	Held bool   `json:"held"`
	Fact string `json:"fact,omitempty"`
}

// An Event is one entry of the append-only log of a space.
type Event struct {
	Seq        uint64            `json:"seq"`
	Space      string            `json:"space,omitempty"`
	At         time.Time         `json:"at"`
	Kind       EventKind         `json:"kind"`
	Actor      Actor             `json:"actor"`
	GrantID    string            `json:"grant_id,omitempty"`
	Holder     string            `json:"holder,omitempty"` // the holder of the grant or request
	Locks      []Lock            `json:"locks,omitempty"`
	Conflicts  []ConflictInfo    `json:"conflicts,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Conditions []Condition       `json:"conditions,omitempty"`
	Data       map[string]string `json:"data,omitempty"`
}
