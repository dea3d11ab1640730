package lockkeeper

import "time"

// EventKind names what happened.
type EventKind string

// The events of the lock engine.
const (
	EventAcquired      EventKind = "acquired"       // a request became a grant
	EventDenied        EventKind = "denied"         // refused without waiting; once per change of blockers
	EventWaiting       EventKind = "waiting"        // entered the line, or its blockers changed
	EventWithdrawn     EventKind = "withdrawn"      // left the line by itself
	EventTimedOut      EventKind = "timed_out"      // left the line because its time was up
	EventRenewFailed   EventKind = "renew_failed"   // a heartbeat came for a grant that is gone
	EventUpgraded      EventKind = "upgraded"       // upgradeable became write
	EventUpgradeDenied EventKind = "upgrade_denied" // it could not; the hold stays
	EventExtended      EventKind = "extended"       // the grant grew
	EventExtendDenied  EventKind = "extend_denied"  // it could not; the hold stays
	EventReleased      EventKind = "released"       // by its holder
	EventExpired       EventKind = "expired"        // its lease ran out and the policy frees such grants
	EventRecovered     EventKind = "recovered"      // freed after its holder was found dead
	EventForceReleased EventKind = "force_released" // freed by a person or an administrator
	EventRecoverFailed EventKind = "recover_failed" // a dead holder left something running that would not end
	EventRevoking      EventKind = "revoking"       // taken away, and handed on once what it decided is done
	EventLanded        EventKind = "landed"         // changes were decided: from here on they are done to their end
	EventUndone        EventKind = "undone"         // decided changes were taken back
	EventGap           EventKind = "gap"            // a write was refused, and its new content is kept
	EventFinished      EventKind = "finished"       // decided changes that their writer left were done to their end
	EventCleared       EventKind = "cleared"        // what was staged by a writer that is gone, and never decided, was removed
	EventQueued        EventKind = "queued"         // an item was put into the queue
	EventBlocked       EventKind = "blocked"        // an item was found blocked by locks; once per change of blockers
	EventEscalated     EventKind = "escalated"      // an item waited for locks or a slot for so long that it comes before others
	EventFailed        EventKind = "failed"         // an item went to the error state
	EventRequeued      EventKind = "requeued"       // an item went back into the queue: by a person, or because its worker is gone
	EventDecided       EventKind = "decided"        // a person answered what a flow waits for, or switched the checks of sessions off
	EventRefused       EventKind = "refused"        // an act that its actor may not do
	EventEpoch         EventKind = "epoch"          // the space began a new epoch of fences
)

// ActorKind says what kind of actor did something.
type ActorKind string

// The kinds of actor. An agent may never force anything.
const (
	ActorHolder ActorKind = "holder" // whoever holds or asks for the grant
	ActorPerson ActorKind = "person"
	ActorAdmin  ActorKind = "admin"
	ActorAgent  ActorKind = "agent"
	ActorSystem ActorKind = "system" // Lockkeeper itself: reaper, promotion, recovery
)

// Actor is who did something.
type Actor struct {
	Name string    `json:"name"`
	Kind ActorKind `json:"kind"`
}

// System returns the actor that stands for Lockkeeper itself.
func System() Actor { return Actor{Name: "lockkeeper", Kind: ActorSystem} }

// Condition is one thing that was checked before a grant was freed.
type Condition struct {
	Name string `json:"name"`
	Held bool   `json:"held"`
	Fact string `json:"fact,omitempty"`
}

// Event is one entry of the append-only record of a space.
type Event struct {
	Seq        uint64            `json:"seq"`
	Space      string            `json:"space,omitempty"`
	At         time.Time         `json:"at"`
	Kind       EventKind         `json:"kind"`
	Actor      Actor             `json:"actor"`
	GrantID    string            `json:"grant_id,omitempty"`
	Holder     string            `json:"holder,omitempty"` // whose grant or request it is about
	Locks      []Lock            `json:"locks,omitempty"`
	Conflicts  []ConflictInfo    `json:"conflicts,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Conditions []Condition       `json:"conditions,omitempty"`
	Data       map[string]string `json:"data,omitempty"`
}
