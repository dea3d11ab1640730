package lease

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/boot"
)

// malformedAge is how long a malformed file must be unmodified to count as stale. A tool
// that creates the file before writing into it needs a moment.
const malformedAge = 2 * time.Second

// A verdict says whether a lease file may be broken.
type verdict struct {
	stale      bool
	at         time.Time              // when the file may be broken; zero if unknown
	conditions []lockkeeper.Condition // the checked conditions
}

// judge decides whether a file is stale. disk returns the time by the clock that stamps
// files.
func judge(path string, f *fileState, seen sighting, now Reading, grace time.Duration, disk func() (time.Time, error)) (verdict, error) {
	switch {
	case f.info == nil: // the file is missing or unreadable
		return verdict{}, nil
	case f.payload == nil:
		return judgeMalformed(path, f, seen, now, disk)
	}
	end := f.payload.ExpiresAt.Add(grace)
	past := fmt.Sprintf("it expired at %s, with a grace of %s", formatTime(f.payload.ExpiresAt.Time), grace)
	known := seen.Key == f.key()
	if wall, ok := now.wallSince(seen.At); ok && known {
		v := verdict{at: end.Add(now.Wall.Sub(wall).Round(time.Second))} // the time as the wall clock will show it
		v.check("the expiry and the grace period have passed on the monotonic clock", !wall.Before(end), past)
		return v, nil
	}
	v := verdict{at: end}
	v.check("the expiry and the grace period have passed on the wall clock", !now.Wall.Before(end), past)
	if !known || !seen.Ours {
		return v, nil
	}
	// The file is a Lockkeeper file of another boot or another host, whose clock may differ.
	stamped, err := disk()
	if err != nil {
		return verdict{}, err
	}
	age := stamped.Sub(f.info.ModTime())
	v.check("the file is older than its lease plus the grace period", age >= f.payload.ttl()+grace, "it was written "+age.Round(time.Second).String()+" ago")
	return v, nil
}

// check adds a condition that must hold for the file to be stale.
func (v *verdict) check(name string, held bool, fact string) {
	v.stale = held && (v.stale || len(v.conditions) == 0)
	v.conditions = append(v.conditions, lockkeeper.Condition{Name: name, Held: held, Fact: fact})
}

// judgeMalformed decides about a file that is not a lease file. If its name does not end
// in .lock, the path may be a typo, so the file is refused.
func judgeMalformed(path string, f *fileState, seen sighting, now Reading, disk func() (time.Time, error)) (verdict, error) {
	if !strings.HasSuffix(path, suffix) {
		return verdict{}, &lockkeeper.RefusedError{Act: "lease file " + path, Reason: "it is another kind of file (" + f.problem + "), and its name does not end in " + suffix + "; it was not changed",
			Next: "give a path that ends in " + suffix + ", or remove the file"}
	}
	stamped, err := disk()
	if err != nil {
		return verdict{}, err
	}
	age := stamped.Sub(f.info.ModTime())
	if wall, ok := now.wallSince(seen.At); ok && seen.Key == f.key() {
		age = max(age, wall.Sub(seen.At.Wall)) // the modification time may be in the future
	}
	v := verdict{at: now.Wall.Add(malformedAge - age)}
	v.check("it is not a lease", true, f.problem)
	v.check("it was not modified for "+malformedAge.String(), age >= malformedAge, "it was modified "+age.Round(time.Millisecond).String()+" ago")
	return v, nil
}

// isExpired reports whether a member's expiry and the grace period have passed.
func (s member) isExpired(now Reading, grace time.Duration) bool {
	wall, ok := now.wallSince(s.At)
	if !ok {
		wall = now.Wall
	}
	return !wall.Before(s.ExpiresAt.Add(grace))
}

// A Reading is one reading of the host's clocks.
type Reading struct {
	Wall   time.Time     `json:"wall"`
	Ticks  time.Duration `json:"ticks"`  // time of a clock that cannot be set
	Origin string        `json:"origin"` // where Ticks counts from; empty if there is no such clock
}

// wallSince returns the wall clock time of r as if the wall clock had not been set after
// the reading seen. ok is false if the two readings cannot be compared.
func (r Reading) wallSince(seen Reading) (wall time.Time, ok bool) {
	if r.Origin == "" || r.Origin != seen.Origin || r.Ticks < seen.Ticks {
		return time.Time{}, false
	}
	return seen.Wall.Add(r.Ticks - seen.Ticks), true
}

// systemClock returns a reader of this host's clocks. The origin names the boot and the
// time namespace, because each namespace has its own monotonic clock.
func systemClock() func() Reading {
	id, bootErr := boot.ID()
	space, spaceErr := os.Readlink("/proc/self/ns/time")
	origin := ""
	if bootErr == nil && (spaceErr == nil || os.IsNotExist(spaceErr)) { // a kernel without time namespaces has no link
		origin = id + " " + space
	}
	return func() Reading {
		r := Reading{Wall: time.Now().Round(0), Origin: origin}
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			r.Origin = ""
		}
		r.Ticks = time.Duration(ts.Nano())
		return r
	}
}

// payload returns the content of the lease file for a hold. A group of readers is one
// holder that lasts as long as its last member.
func (h *hold) payload() payload {
	first := h.By[0].payload
	if !h.Shared {
		return first
	}
	last := h.last()
	group := payload{Token: h.Token, PID: last.PID, CreatedAt: first.CreatedAt, ExpiresAt: last.ExpiresAt, RenewedAt: last.RenewedAt}
	for _, s := range h.By {
		if s.CreatedAt.Before(group.CreatedAt.Time) {
			group.CreatedAt = s.CreatedAt
		}
	}
	group.Owner = "read by " + strings.Join(h.owners(), ", ")
	return group
}

func (h *hold) last() member {
	return slices.MaxFunc(h.By, func(a, b member) int { return a.ExpiresAt.Compare(b.ExpiresAt.Time) })
}

func (h *hold) owners() (names []string) {
	for _, s := range h.By {
		names = append(names, s.Owner)
	}
	return names
}

func (h *hold) find(token string) int {
	return slices.IndexFunc(h.By, func(s member) bool { return s.Token == token })
}

// isCurrent reports whether a member has not expired.
func (h *hold) isCurrent(now Reading, grace time.Duration) bool {
	return slices.ContainsFunc(h.By, func(s member) bool { return !s.isExpired(now, grace) })
}

// with returns the hold with s added and expired members removed.
func (h *hold) with(s member, now Reading, grace time.Duration) *hold {
	next := h.without(s.Token, now, grace)
	next.By = append(next.By, s)
	return next
}

// without returns the hold without the member with a token and without expired members.
func (h *hold) without(token string, now Reading, grace time.Duration) *hold {
	next := &hold{Token: h.Token, Shared: h.Shared}
	for _, s := range h.By {
		if s.Token != token && !s.isExpired(now, grace) {
			next.By = append(next.By, s)
		}
	}
	return next
}
