package lease

import (
	"fmt"
	"strings"
	"time"

	"lockkeeper"
)

// malformedAge is how long a malformed file must have been left alone to count as
// stale: whoever creates one first and then writes into it needs a moment for that.
const malformedAge = 2 * time.Second

// verdict says whether a lease file may be broken.
type verdict struct {
	stale      bool
	at         time.Time              // from when on; zero: nobody can tell
	conditions []lockkeeper.Condition // what was checked
}

// judge decides whether what is there is stale. disk tells the time by the clock that
// stamps files.
func judge(path string, f *found, seen sighting, now Reading, grace time.Duration, disk func() (time.Time, error)) (verdict, error) {
	switch {
	case f.info == nil: // nothing, or nothing that may be read
		return verdict{}, nil
	case f.payload == nil:
		return judgeMalformed(path, f, seen, now, disk)
	}
	end := f.payload.ExpiresAt.Add(grace)
	past := fmt.Sprintf("it expired at %s, with a grace of %s", shown(f.payload.ExpiresAt.Time), grace)
	known := seen.Key == f.key()
	if wall, ok := now.since(seen.At); ok && known {
		v := verdict{at: end.Add(now.Wall.Sub(wall).Round(time.Second))} // as a person's clock will show it
		v.check("expiry and grace are past by the clock of this boot", !wall.Before(end), past)
		return v, nil
	}
	v := verdict{at: end}
	v.check("expiry and grace are past by the wall clock", !now.Wall.Before(end), past)
	if !known || !seen.Ours {
		return v, nil
	}
	// One of ours, of another boot, or of another host, whose clock may be another.
	stamped, err := disk()
	if err != nil {
		return verdict{}, err
	}
	age := stamped.Sub(f.info.ModTime())
	v.check("the file is older than it was to last, and the grace", age >= f.payload.lasts()+grace, "it was written "+age.Round(time.Second).String()+" ago")
	return v, nil
}

// check adds something that must hold for the file to be stale.
func (v *verdict) check(name string, held bool, fact string) {
	v.stale = held && (v.stale || len(v.conditions) == 0)
	v.conditions = append(v.conditions, lockkeeper.Condition{Name: name, Held: held, Fact: fact})
}

// judgeMalformed decides about a file that is no lease. One that is not called
// a lock may be anything: somebody mistyped a path.
func judgeMalformed(path string, f *found, seen sighting, now Reading, disk func() (time.Time, error)) (verdict, error) {
	if !strings.HasSuffix(path, suffix) {
		return verdict{}, &lockkeeper.RefusedError{Act: "lease " + path, Reason: "there is a file that is no lease (" + f.odd + "), and by its name it was not meant to be one; it is left alone",
			Next: "give a path that ends in " + suffix + ", or remove the file"}
	}
	stamped, err := disk()
	if err != nil {
		return verdict{}, err
	}
	age := stamped.Sub(f.info.ModTime())
	if wall, ok := now.since(seen.At); ok && seen.Key == f.key() {
		age = max(age, wall.Sub(seen.At.Wall)) // its stamp may lie in the future
	}
	v := verdict{at: now.Wall.Add(malformedAge - age)}
	v.check("it is no lease", true, f.odd)
	v.check("it was not modified for "+malformedAge.String(), age >= malformedAge, "it was modified "+age.Round(time.Millisecond).String()+" ago")
	return v, nil
}

// isPast reports whether a holder's time and the grace are past.
func (s stay) isPast(now Reading, grace time.Duration) bool {
	wall, ok := now.since(s.At)
	if !ok {
		wall = now.Wall
	}
	return !wall.Before(s.ExpiresAt.Add(grace))
}
