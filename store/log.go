package store

import "lockkeeper"

// LogReader reads the event log of a space.
type LogReader interface {
	// Events returns one page of the log.
	Events(EventQuery) ([]lockkeeper.Event, error)
}

// LogTx appends to the event log of a space and remembers recent refusals.
type LogTx interface {
	// Append adds an event, numbers it and returns the number. Numbers rise
	// strictly and are never reused, even after earlier events were pruned.
	Append(lockkeeper.Event) (seq uint64, err error)
	// Denial returns the digest that was last stored under a key; 0: none. A caller
	// that gets the same digest again does not repeat the event.
	Denial(key string) (uint64, error)
	// SetDenial stores a digest under a key for an hour.
	SetDenial(key string, digest uint64) error
}

// EventQuery selects a page of events by sequence number.
type EventQuery struct {
	After  uint64 // only events with a larger number
	Before uint64 // only events with a smaller number; 0: no bound
	Limit  int    // number of events; at most MaxPage
	Latest bool   // newest first instead of oldest first
}

// MaxPage is the largest number of events or items that one query reads. A caller that needs
// more reads page by page.
const MaxPage = 50_000

// Page returns the number of rows that a query with a limit reads.
func Page(limit int) int { return max(0, min(limit, MaxPage)) }
