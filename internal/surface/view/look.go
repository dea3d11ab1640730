package view

import (
	"context"
	"strconv"
	"sync"
	"time"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project"
	"lockkeeper/store"
)

// Look looks at one open codebase. It may be used by any number of callers at once, and
// what it answers is shared among them: it is not to be changed.
type Look struct {
	app     *project.Project
	journal *run.Journal
	flights flights
	changes changes
	grants  grants

	mu       sync.Mutex
	units    map[string]*unit     // by flow and folder
	found    map[string]discovery // by flow
	shelf    shelf
	confined *confinement
}

// New makes a Look. The codebase stays the caller's.
func New(a *project.Project) *Look {
	return &Look{app: a, journal: conduct.Journal(a), units: map[string]*unit{}, found: map[string]discovery{}}
}

// Moment says of when an answer is.
type Moment struct {
	At  time.Time `json:"at"`
	Seq uint64    `json:"seq"` // the last event of the log that it knows of
}

// Seconds is a length of time, which JSON has as a number.
type Seconds float64

// Duration is the same as Go has it.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

func seconds(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// at looks at the store, and says when that was.
func (l *Look) at(ctx context.Context, look func(store.Reader) error) (m Moment, err error) {
	err = l.app.View(ctx, func(r store.Reader) error {
		last, err := r.Events(store.EventQuery{Limit: 1, Latest: true})
		if err != nil {
			return err
		}
		m = Moment{At: r.Now().Wall.UTC()}
		if len(last) > 0 {
			m.Seq = last[0].Seq
		}
		return look(r)
	})
	return m, err
}

// listOf is a list that JSON spells [] when it is empty.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
