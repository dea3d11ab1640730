package progress

import (
	"context"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// A Note is a person's message to the next agent of a phase.
type Note struct {
	Phase    string    `json:"phase"`
	Batch    string    `json:"batch,omitempty"`    // id of the batch; empty: the note is for the unit
	Question string    `json:"question,omitempty"` // for the agent that answers this open question
	Text     string    `json:"text"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
}

type notes struct {
	Notes []Note `json:"notes"`
}

// AddNote leaves a note for a phase of a unit or of a batch of it, or for an open question.
func (b *Tracker) AddNote(ctx context.Context, unit string, n Note) error {
	if strings.TrimSpace(n.Text) == "" {
		return &lockkeeper.InputError{Field: "note", Value: n.Text, Reason: "empty", Next: "say what the agent should know"}
	}
	if _, ok := b.flow.Phase(n.Phase); !ok && n.Question == "" {
		return &lockkeeper.InputError{Field: "phase", Value: n.Phase, Reason: "the flow " + b.flow.Name + " has no such phase", Next: "use one of " + b.phaseNames()}
	}
	return b.personal(ctx, unit, n.By, func(u *Unit) error {
		if n.Batch != "" {
			if _, err := u.needBatch("leave a note for", n.Batch); err != nil {
				return err
			}
		}
		if _, open := u.OpenQuestion(n.Question); n.Question != "" && !open {
			return &lockkeeper.InputError{Field: "question", Value: unit + "/" + n.Question, Reason: "no open question has this id", Next: "lockkeeper decide show plan " + unit}
		}
		var all notes
		if is := u.docs.notes.value; is != nil {
			all.Notes = slices.Clone(is.Notes)
		}
		n.At = b.time()
		all.Notes = append(all.Notes, n)
		return b.write(ctx, u.docs.notes.stored, all, n.By)
	})
}

// Notes lists the notes for the next agent of a phase: those written after the phase's last
// document.
func (u *Unit) Notes(batch string, phase flow.Phase) (list []Note) {
	if u.docs.notes.value == nil {
		return nil
	}
	file := phase.Output
	if batch != "" {
		file = "batches/" + batch + "/" + file
	}
	var last time.Time
	for _, p := range u.Documents {
		if p.File == file {
			last = p.WrittenAt
		}
	}
	for _, n := range u.docs.notes.value.Notes {
		if n.Batch == batch && n.Phase == phase.Name && n.At.After(last) {
			list = append(list, n)
		}
	}
	return list
}

// NotesOn lists the notes for the agent that answers a question.
func (u *Unit) NotesOn(question string) (list []Note) {
	if u.docs.notes.value == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(u.docs.notes.value.Notes), func(n Note) bool { return n.Question != question })
}

func (b *Tracker) phaseNames() string {
	return listOf(b.flow.Phases, func(p flow.Phase) string { return p.Name })
}
