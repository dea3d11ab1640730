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
	Displaced = "displaced" // an edit that a landing displaced and could not return
	Unlanded  = "unlanded"  // a write, or the work of a batch, that failed to land
	Whole     = "whole"     // a directory or an irregular file, moved elsewhere; the content says where
	Archive   = "archive"   // many files as a gzipped tar archive; Path is their common directory
	Noted     = "noted"     // too large to keep; the content is a text that says so
	Damaged   = "damaged"   // an altered entry; Reason says how

	// Uncommitted is the last version of a file that was lost while a command of a session ran.
	Uncommitted = "uncommitted"
)

// An Entry describes content on the shelf.
type Entry struct {
	ID      string             `json:"id"` // ids sort by time, and are valid file names
	At      time.Time          `json:"at"`
	Kind    string             `json:"kind"`
	Path    string             `json:"path"` // where the content was meant to go, relative to the root
	GrantID string             `json:"grant_id,omitempty"`
	Holder  string             `json:"holder,omitempty"`
	Reason  string             `json:"reason"`
	Base    lockkeeper.Version `json:"base"`             // the version that the content was based on
	Delete  bool               `json:"delete,omitempty"` // the change is a deletion
	Mode    fs.FileMode        `json:"mode"`
	Size    int64              `json:"size"`
	Sum     string             `json:"sum,omitempty"` // SHA-256 of the content in hex; empty without content
}

// idTime is the first part of an id; eight random hex digits follow.
const idTime = "20060102T150405.000"

func newID(at time.Time) string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return at.UTC().Format(idTime) + "-" + hex.EncodeToString(random[:])
}

// timeOf returns the time in an id, and false if the id is malformed.
func timeOf(id string) (at time.Time, ok bool) {
	stamp, random, _ := strings.Cut(id, "-")
	at, err := time.Parse(idTime, stamp)
	// Parse accepts other spellings of a time too, but an entry has only one name.
	ok = err == nil && at.Format(idTime) == stamp && len(random) == 8 && strings.Trim(random, "0123456789abcdef") == ""
	return at, ok
}

func refuse(id, reason string) error {
	return &lockkeeper.InputError{Field: "rescue id", Value: id, Reason: reason, Next: "use an id from `lockkeeper rescue list`"}
}
