package lockkeeper

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Version is the content of a path: nothing (the zero value), a file with its permissions,
// or a directory.
type Version struct {
	Kind Kind        // File or Dir; 0: nothing
	Mode fs.FileMode // permission bits
	Sum  [32]byte    // SHA-256 of the content; for a directory, of everything in it
}

// Exists reports whether the path exists in this version.
func (v Version) Exists() bool { return v.Kind != 0 }

func (v Version) String() string {
	if !v.Exists() {
		return "nothing"
	}
	return fmt.Sprintf("%s %04o %x", v.Kind, v.Mode.Perm(), v.Sum)
}

// MarshalText returns what String returns.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (v *Version) UnmarshalText(text []byte) error {
	*v = Version{}
	if string(text) == "nothing" {
		return nil
	}
	bad := &InputError{Field: "version", Value: string(text), Reason: "not a kind, a mode and a hash", Next: "copy the whole version"}
	parts := strings.Split(string(text), " ")
	if len(parts) != 3 || v.Kind.UnmarshalText([]byte(parts[0])) != nil {
		return bad
	}
	mode, err := strconv.ParseUint(parts[1], 8, 32)
	sum, err2 := hex.DecodeString(parts[2])
	if err != nil || err2 != nil || len(sum) != len(v.Sum) {
		return bad
	}
	v.Mode = fs.FileMode(mode)
	copy(v.Sum[:], sum)
	return nil
}

// A PathChange is what a landing does to one path.
type PathChange struct {
	Path string  `json:"path"`
	Old  Version `json:"old"`
	New  Version `json:"new"`
}

// A Landing is one commit by the gate: a set of changes that reaches the tree as a whole.
// A decided landing is completed, even after a crash, unless another program's edit
// conflicts with it.
type Landing struct {
	Seq     uint64       `json:"landing"` // number of the event that decided the landing
	Commit  string       `json:"commit"`  // name of the landing's stage; unique
	GrantID string       `json:"grant_id"`
	Holder  string       `json:"holder"`
	Fence   uint64       `json:"fence"`
	Site    string       `json:"site"` // the disk of the tree: an id, and a name for people
	Taker   string       `json:"-"`    // the process that completes the landing: its writer, or the last recovery that took the landing over
	State   LandingState `json:"state"`
	At      time.Time    `json:"at"`
	Changes []PathChange `json:"changes"`

	Made   []string `json:"made,omitempty"`   // directories that the landing makes, outermost first
	Clears []string `json:"clears,omitempty"` // directories that the landing removes if they are empty, innermost first
	Draft  string   `json:"draft,omitempty"`  // for a replaced directory: where the new one is prepared
	Undoes uint64   `json:"undoes,omitempty"` // the landing that this one undoes
}

// Clone returns a deep copy.
func (l *Landing) Clone() *Landing {
	c := *l
	c.Changes, c.Made, c.Clears = slices.Clone(l.Changes), slices.Clone(l.Made), slices.Clone(l.Clears)
	return &c
}

// LandingState is the progress of a landing.
type LandingState uint8

// The states. Some, all or none of the changes of a decided landing are in the tree. Its
// grant cannot be freed before the landing is complete or rolled back.
const (
	Decided LandingState = iota + 1
	Committed
	Undone // rolled back: another edit conflicted with the landing, or its content was lost
)

var landingStates = []string{Decided: "decided", Committed: "committed", Undone: "undone"}

func (s LandingState) String() string { return nameIn(landingStates, s, "state") }

// MarshalText returns the name of the state.
func (s LandingState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
