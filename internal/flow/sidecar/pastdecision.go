package sidecar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"lockkeeper"
)

// What can be decided about an item so that later runs know of it.
const (
	Deferred = "deferred"
	Rejected = "rejected"
)

// A PastDecision is what was decided about an item, for later runs.
type PastDecision struct {
	Description string    `json:"description"`
	Controller  string    `json:"controller"`
	Decision    string    `json:"decision"`
	Timestamp   time.Time `json:"timestamp"` // now, where it is not given
	Notes       string    `json:"notes,omitempty"`
	By          string    `json:"by,omitempty"`
	Reenabled   *Mark     `json:"reenabled,omitempty"` // it may come back although it was rejected
}

// Mark says who did something, and when.
type Mark struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Normalise is a description as it is compared with others: without regard to case,
// spaces and punctuation. Symbols such as < and > stay, which can be all the difference.
func Normalise(description string) string {
	folded := strings.ToLower(cases.Fold().String(norm.NFKC.String(description))) // some scripts fold to capitals
	spaced := strings.Map(func(r rune) rune {
		if unicode.IsPunct(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, norm.NFKC.String(folded))
	return strings.Join(strings.Fields(spaced), " ")
}

// item is what one entry is about.
type item struct{ controller, description string }

func (e PastDecision) item() item { return item{e.Controller, Normalise(e.Description)} }

// problem says what keeps an entry from being one.
func (e PastDecision) problem() string {
	switch {
	case e.Controller == "":
		return "it names no controller"
	case Normalise(e.Description) == "":
		return "its description has no words"
	case e.Decision != Deferred && e.Decision != Rejected:
		return fmt.Sprintf("its decision is %q, neither deferred nor rejected", e.Decision)
	}
	return ""
}

// line is an entry in a file.
type line struct {
	PastDecision
	item item
	text json.RawMessage // compact, with whatever else somebody wrote into it
}

// line is the entry as it is stored.
func (e PastDecision) line() (line, error) {
	wrong := func(reason string) error {
		return &lockkeeper.InputError{Field: "decision", Value: e.Controller + ": " + e.Description, Reason: reason}
	}
	if p := e.problem(); p != "" {
		return line{}, wrong(p)
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = time.Now()
	}
	e.Timestamp = e.Timestamp.Round(0).UTC()
	text, err := encode(e)
	if err != nil {
		return line{}, wrong(err.Error())
	}
	return line{PastDecision: e, item: e.item(), text: text}, nil
}

// same reports whether two lines are spelled alike.
func (l line) same(other line) bool { return bytes.Equal(l.text, other.text) }

// MarshalJSON implements json.Marshaler.
func (l line) MarshalJSON() ([]byte, error) { return l.text, nil }

// UnmarshalJSON implements json.Unmarshaler.
func (l *line) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &l.PastDecision); err != nil {
		return err
	}
	l.item, l.text = l.PastDecision.item(), bytes.Clone(text)
	return nil
}
