package cli

import (
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/config"
)

// eventKinds is every kind of event there is.
func eventKinds() []string {
	kinds := []lockkeeper.EventKind{
		lockkeeper.EventAcquired, lockkeeper.EventDenied, lockkeeper.EventWaiting, lockkeeper.EventWithdrawn, lockkeeper.EventTimedOut,
		lockkeeper.EventRenewFailed, lockkeeper.EventUpgraded, lockkeeper.EventUpgradeDenied, lockkeeper.EventExtended, lockkeeper.EventExtendDenied,
		lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased, lockkeeper.EventRecoverFailed,
		lockkeeper.EventRevoking, lockkeeper.EventLanded, lockkeeper.EventUndone, lockkeeper.EventGap, lockkeeper.EventFinished,
		lockkeeper.EventQueued, lockkeeper.EventBlocked, lockkeeper.EventEscalated, lockkeeper.EventFailed, lockkeeper.EventRequeued,
		lockkeeper.EventCleared, lockkeeper.EventRefused, lockkeeper.EventEpoch,
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// parseKind reads the kind of events to show, also as audit itself spells it; empty
// for all of them.
func parseKind(text string) (string, error) {
	kind, known := strings.NewReplacer(" ", "_", "-", "_").Replace(text), eventKinds()
	if text == "" || slices.Contains(known, kind) {
		return kind, nil
	}
	next := "one of " + strings.Join(known, ", ")
	if near, ok := config.Nearest(kind, known); ok {
		next = "did you mean " + near + "? It is " + next
	}
	return "", &lockkeeper.InputError{Field: "kind", Value: text, Reason: "no kind of event", Next: next}
}
