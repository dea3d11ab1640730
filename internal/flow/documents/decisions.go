package documents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"lockkeeper"
)

// kinds returns the kinds of stored decisions. Each has <kind>.json, and its previous version
// in <kind>.previous.json.
func kinds() [2]string { return [2]string{Deferred, Rejected} }

// PastDecisions lists the items that earlier runs deferred and rejected. A malformed file, or one
// that is missing while its previous version exists, is a *MalformedError until a person repairs
// it. A malformed file is copied.
func (s *Store) PastDecisions(ctx context.Context) (entries []PastDecision, err error) {
	err = s.decisions().change(ctx, false, func(p *location) error {
		l, err := p.ledger(ctx)
		if err != nil {
			return err
		}
		for _, kind := range kinds() {
			for _, line := range l.wanted[kind] {
				entries = append(entries, line.PastDecision)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Record stores decisions. Each replaces the earlier one on the same item.
func (s *Store) Record(ctx context.Context, entries ...PastDecision) error {
	if len(entries) == 0 {
		return nil
	}
	lines := make([]line, len(entries))
	for i, e := range entries {
		var err error
		if lines[i], err = e.line(); err != nil {
			return err
		}
	}
	return s.edit(ctx, entries[0].By, func(l *ledger) error {
		for _, e := range lines {
			l.set(e)
		}
		return nil
	})
}

// Forget removes recorded decisions. It ignores missing ones. If one of them was changed since,
// it returns a *ChangedError and removes nothing.
func (s *Store) Forget(ctx context.Context, entries ...PastDecision) error {
	if len(entries) == 0 {
		return nil
	}
	return s.edit(ctx, entries[0].By, func(l *ledger) error {
		for _, e := range entries {
			kind, i, found := l.find(e.item())
			if !found {
				continue
			}
			is := l.wanted[kind][i]
			if is.Decision != e.Decision || !e.Timestamp.IsZero() && !is.Timestamp.Equal(e.Timestamp) {
				return &ChangedError{Path: l.p.folder.rel(kind + ".json"), Was: e.Decision, Is: is.Decision, By: is.By, At: is.Timestamp}
			}
			l.wanted[kind] = slices.Delete(l.wanted[kind], i, i+1)
		}
		return nil
	})
}

// Reenable marks a rejected item as re-enabled. An earlier mark stays.
func (s *Store) Reenable(ctx context.Context, controller, description, by string) error {
	return s.mark(ctx, controller, description, by, func(was *Mark) *Mark {
		return cmp.Or(was, &Mark{By: by, At: time.Now().Round(0).UTC()})
	})
}

func (s *Store) UndoReenable(ctx context.Context, controller, description, by string) error {
	return s.mark(ctx, controller, description, by, func(*Mark) *Mark { return nil })
}

func (s *Store) mark(ctx context.Context, controller, description, by string, next func(was *Mark) *Mark) error {
	wanted := PastDecision{Controller: controller, Description: description}.item()
	return s.edit(ctx, by, func(l *ledger) error {
		kind, i, found := l.find(wanted)
		if !found || kind != Rejected {
			return &lockkeeper.InputError{Field: "item", Value: controller + ": " + description, Reason: "not rejected",
				Next: "lockkeeper decide list"}
		}
		e := l.wanted[kind][i].PastDecision
		was := e.Reenabled
		if e.Reenabled = next(was); e.Reenabled == was {
			return nil
		}
		marked, err := e.line()
		if err != nil {
			return err
		}
		l.set(marked)
		return nil
	})
}

// edit changes the decisions under the lock.
func (s *Store) edit(ctx context.Context, by string, change func(*ledger) error) error {
	return s.decisions().change(ctx, true, func(p *location) error {
		l, err := p.ledger(ctx)
		if err != nil {
			return err
		}
		if err := change(l); err != nil {
			return err
		}
		return l.save(ctx, About{By: by})
	})
}

// These are the decisions that later runs know.
const (
	Deferred = "deferred"
	Rejected = "rejected"
)

// A PastDecision is a decision on an item, stored for later runs.
type PastDecision struct {
	Description string    `json:"description"`
	Controller  string    `json:"controller"`
	Decision    string    `json:"decision"`
	Timestamp   time.Time `json:"timestamp"` // zero: the time of writing
	Notes       string    `json:"notes,omitempty"`
	By          string    `json:"by,omitempty"`
	Reenabled   *Mark     `json:"reenabled,omitempty"` // the mark of the person who enabled the item again
}

// A Mark records who did something, and when.
type Mark struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Normalize returns a description for comparison, without case, white space and punctuation.
// Symbols such as < and > stay, because they can be the only difference.
func Normalize(description string) string {
	folded := strings.ToLower(cases.Fold().String(norm.NFKC.String(description))) // some scripts fold to capitals
	spaced := strings.Map(func(r rune) rune {
		if unicode.IsPunct(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, norm.NFKC.String(folded))
	return strings.Join(strings.Fields(spaced), " ")
}

type item struct{ controller, description string }

func (e PastDecision) item() item { return item{e.Controller, Normalize(e.Description)} }

func (e PastDecision) problem() string {
	switch {
	case e.Controller == "":
		return "it names no controller"
	case Normalize(e.Description) == "":
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
	text json.RawMessage // the JSON without white space, also with unknown members that a person added
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

func (l line) same(other line) bool { return bytes.Equal(l.text, other.text) }

func (l line) MarshalJSON() ([]byte, error) { return l.text, nil }

func (l *line) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &l.PastDecision); err != nil {
		return err
	}
	l.item, l.text = l.PastDecision.item(), bytes.Clone(text)
	return nil
}
