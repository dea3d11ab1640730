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

// The decisions that later runs know.
const (
	Deferred = "deferred"
	Rejected = "rejected"
)

// A PastDecision is a decision on an item, stored for later runs.
type PastDecision struct {
	Description string    `json:"description"`
	Controller  string    `json:"controller"`
	Decision    string    `json:"decision"`
	Timestamp   time.Time `json:"timestamp"` // zero means now
	Notes       string    `json:"notes,omitempty"`
	By          string    `json:"by,omitempty"`
	Reenabled   *Mark     `json:"reenabled,omitempty"` // a person re-enabled it
}

// A Mark records who did something, and when.
type Mark struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Normalise returns a description for comparison, without case, white space and punctuation.
// Symbols such as < and > stay, because they can be the only difference.
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

// An item identifies the item of a decision.
type item struct{ controller, description string }

func (e PastDecision) item() item { return item{e.Controller, Normalise(e.Description)} }

// problem returns why a decision is invalid, or "" if it is valid.
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

// A line is a decision in a file.
type line struct {
	PastDecision
	item item
	text json.RawMessage // compact, with unknown members that a person added
}

// line returns the decision in its stored form.
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

// same reports whether two lines have the same text.
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
