package lease

import (
	"fmt"
	"strings"
	"time"

	"lockkeeper"
)

// malformedAge is how long a malformed file must be unmodified to count as stale. A tool
// that creates the file before writing into it needs a moment.
const malformedAge = 2 * time.Second

// A verdict says whether a lease file may be broken.
type verdict struct {
	stale      bool
	at         time.Time              // from when on; zero if unknown
	conditions []lockkeeper.Condition // the checked conditions
}

// judge decides whether a file is stale. disk returns the time by the clock that stamps
// files.
func judge(path string, f *fileState, seen sighting, now Reading, grace time.Duration, disk func() (time.Time, error)) (verdict, error) {
	switch {
	case f.info == nil: // missing or unreadable
		return verdict{}, nil
	case f.payload == nil:
		return judgeMalformed(path, f, seen, now, disk)
	}
	end := f.payload.ExpiresAt.Add(grace)
	past := fmt.Sprintf("it expired at %s, with a grace of %s", formatTime(f.payload.ExpiresAt.Time), grace)
	known := seen.Key == f.key()
	if wall, ok := now.wallSince(seen.At); ok && known {
		v := verdict{at: end.Add(now.Wall.Sub(wall).Round(time.Second))} // as the wall clock will show it
		v.check("expiry and grace are past by the clock of this boot", !wall.Before(end), past)
		return v, nil
	}
	v := verdict{at: end}
	v.check("expiry and grace are past by the wall clock", !now.Wall.Before(end), past)
	if !known || !seen.Ours {
		return v, nil
	}
	// A Lockkeeper file of another boot or another host, whose clock may differ.
	stamped, err := disk()
	if err != nil {
		return verdict{}, err
	}
	age := stamped.Sub(f.info.ModTime())
	v.check("the file is older than it was to last, and the grace", age >= f.payload.ttl()+grace, "it was written "+age.Round(time.Second).String()+" ago")
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
	v.check("it is no lease", true, f.problem)
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
