package lease

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper/durable"
)

// State is what a lease file is at a moment.
type State string

// The states.
const (
	Free    State = "free"
	Held    State = "held"
	Stale   State = "stale"   // the next one who wants it breaks it
	Unclear State = "unclear" // no lease yet, or one that may not be read: it counts as held
	Refused State = "refused" // no lease file at all: a directory, a link, somebody's text
)

// Info is what is known of a lease.
type Info struct {
	Path      string     `json:"path"`
	State     State      `json:"state"`
	Owner     string     `json:"owner,omitempty"`
	PID       int        `json:"pid,omitempty"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
	RenewedAt *time.Time `json:"last_renewed_at,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	StaleAt   *time.Time `json:"stale_at,omitempty"` // from when on it may be broken, as the wall clock will show it
	Fact      string     `json:"fact,omitempty"`     // what a person should know besides
	Ours      bool       `json:"ours"`               // taken by this package
	Shared    bool       `json:"shared,omitempty"`
	Holders   []Holder   `json:"holders,omitempty"` // of ours: one, or those who read
}

// Holder is one who holds a lease, or reads under it.
type Holder struct {
	Owner      string        `json:"owner"`
	PID        int           `json:"pid"`
	ExpiresAt  time.Time     `json:"expires_at"`
	Phase      string        `json:"phase,omitempty"`
	AcquiredIn time.Duration `json:"acquired_in_ns"`
	Renewals   int           `json:"renewals"`
}

// Look says what a lease is now, by a holder's grace. It changes nothing.
func Look(path string, opt Options) (*Info, error) {
	l := New(path, opt)
	p, err := openPlace(l.opt.Disk, path)
	switch {
	case errors.Is(err, errNoPlace):
		return &Info{Path: path, State: Free}, nil
	case err != nil:
		return nil, err
	}
	defer p.close()
	now := l.opt.Clock()
	rec, err := recordAt(p.beside())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := p.look(p.name)
	if err != nil {
		return &Info{Path: path, State: Refused, Fact: err.Error()}, nil
	}
	return describe(path, f, rec, now, l.opt.Grace), nil
}

// List looks at all leases in a directory, by name.
func List(dir string, opt Options) ([]*Info, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if opt.Disk == nil {
		opt.Disk = durable.OSDisk{}
	}
	var list []*Info
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := Look(filepath.Join(dir, e.Name()), opt)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b *Info) int { return compare(a.Path, b.Path) })
	return list, nil
}

// describe puts together what the file says and what ours recorded.
func describe(path string, f *found, rec *record, now Reading, grace time.Duration) *Info {
	v, odd := judge(path, f, rec.sightingOf(f), now, grace, func() (time.Time, error) { return now.Wall, nil })
	info := &Info{Path: path, State: Held, Fact: f.odd}
	info.Owner, info.PID = f.says.Owner, f.says.PID // also of a file that is no lease
	info.CreatedAt, info.RenewedAt, info.ExpiresAt = known(f.says.CreatedAt.Time), known(f.says.RenewedAt.Time), known(f.says.ExpiresAt.Time)
	info.StaleAt = known(v.at)
	held := rec.Held
	switch {
	case held != nil && f.carries(held.Token):
		info.add(held)
	case held != nil && held.isLive(now, grace): // its file was removed, or replaced
		info.Fact = "its holder has not given it back, though "
		switch p := held.payload(); {
		case f.payload != nil:
			info.Fact += "the file is of " + f.payload.Owner + " by now"
		default:
			info.Fact += "its file was taken away"
			info.Owner, info.PID = p.Owner, p.PID
			info.CreatedAt, info.RenewedAt, info.ExpiresAt = known(p.CreatedAt.Time), known(p.RenewedAt.Time), known(p.ExpiresAt.Time)
			info.StaleAt = known(p.ExpiresAt.Add(grace))
		}
		info.add(held)
		return info
	}
	switch {
	case odd != nil:
		info.State, info.Fact = Refused, odd.Error()
	case !f.isThere():
		info.State = Free
	case v.stale:
		info.State = Stale
	case f.payload == nil:
		info.State = Unclear
	}
	return info
}

func (i *Info) add(h *hold) {
	i.Ours, i.Shared = true, h.Shared
	for _, s := range h.By {
		i.Holders = append(i.Holders, Holder{s.Owner, s.PID, s.ExpiresAt.Time, s.Phase, s.AcquiredIn, s.Renewals})
	}
}

// known is a time that is known, or nil.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
