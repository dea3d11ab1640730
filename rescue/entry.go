package rescue

import (
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"strings"
	"time"

	"lockkeeper"
)

// The kinds of entry.
const (
	Gap       = "gap"       // a write that was refused, or made without a lock
	Displaced = "displaced" // somebody's edit that gave way to another
	Unlanded  = "unlanded"  // a write, or the work of a batch, that failed to land
	Whole     = "whole"     // a directory, or something odd, moved aside as it is; the content says where
	Archive   = "archive"   // many files as one tar archive, compressed with gzip; Path is the directory that they are below
	Noted     = "noted"     // something that was too large to keep; the content says so
	Damaged   = "damaged"   // not as it was put; Reason says how

	// Uncommitted is a file that was lost while a command of a session ran, as it was before.
	Uncommitted = "uncommitted"
)

// Entry is what is known of something that was kept.
type Entry struct {
	ID      string             `json:"id"` // sorts by time, fit for a file name
	At      time.Time          `json:"at"`
	Kind    string             `json:"kind"`
	Path    string             `json:"path"` // where it was to go, relative to the root
	GrantID string             `json:"grant_id,omitempty"`
	Holder  string             `json:"holder,omitempty"`
	Reason  string             `json:"reason"`
	Base    lockkeeper.Version `json:"base"`             // what was there when it was written
	Delete  bool               `json:"delete,omitempty"` // the wanted change is a deletion
	Mode    fs.FileMode        `json:"mode"`
	Size    int64              `json:"size"`
	Sum     string             `json:"sum,omitempty"` // SHA-256 of the content in hex; empty: there is none
}

// idTime is the first part of an id; eight random hex digits follow.
const idTime = "20060102T150405.000"

func newID(at time.Time) string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return at.UTC().Format(idTime) + "-" + hex.EncodeToString(random[:])
}

// timeOf is the time in an id; not ok: it has not the form of one.
func timeOf(id string) (at time.Time, ok bool) {
	stamp, random, _ := strings.Cut(id, "-")
	at, err := time.Parse(idTime, stamp)
	// Parse also takes other spellings of a time; an entry has one name only.
	ok = err == nil && at.Format(idTime) == stamp && len(random) == 8 && strings.Trim(random, "0123456789abcdef") == ""
	return at, ok
}

func refuse(id, reason string) error {
	return &lockkeeper.InputError{Field: "rescue id", Value: id, Reason: reason, Next: "take an id from `lockkeeper rescue list`"}
}
