package acts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// Comment writes a comment on a line of the diff of a batch. The next agent that changes the batch gets it:
// after the diff is returned, or when a phase is repeated or retried.
type Comment struct {
	Batch string `json:"batch"`
	Path  string `json:"path,omitempty"`
	Line  int    `json:"line,omitempty"` // from 1
	Old   bool   `json:"old,omitempty"`  // the line is of the original
	Text  string `json:"text,omitempty"` // empty: the comment with this id is removed
	ID    string `json:"id,omitempty"`   // changes the text of this comment, which is not sent yet; empty: a new comment
}

func (a Comment) Do(ctx context.Context, d *Decider, unit string) (Verdict, error) {
	if _, err := d.Unit(ctx, unit); err != nil {
		return Verdict{}, err
	}
	ref := reviewOf(unit, a.Batch)
	switch {
	case a.ID != "" && a.Text == "":
		return d.one(ctx, d.Tracker.EditComment(ctx, unit, a.Batch, a.ID, "", d.By.Name), ref, "has no longer "+a.ID)
	case a.ID != "":
		return d.one(ctx, d.Tracker.EditComment(ctx, unit, a.Batch, a.ID, a.Text, d.By.Name), ref, "has "+a.ID+" with a new text")
	}
	c := progress.LineComment{Batch: a.Batch, Path: a.Path, Line: a.Line, Old: a.Old, Text: a.Text, By: d.By.Name}
	id, err := d.Tracker.Comment(ctx, unit, c, func(f flow.File, c progress.LineComment) (string, error) {
		return quoted(d.Tracker, unit, f, c)
	})
	return d.one(ctx, err, ref, fmt.Sprintf("has %s on %s:%d", id, a.Path, a.Line))
}

// ParseComment parses a comment as people write it in a terminal: PATH:LINE: TEXT.
func ParseComment(batch, text string) (Comment, error) {
	c := Comment{Batch: batch}
	where, said, ok := strings.Cut(text, ": ")
	at := strings.LastIndexByte(where, ':')
	if ok && at > 0 {
		c.Path, c.Text = where[:at], strings.TrimSpace(said)
		if _, err := fmt.Sscanf(where[at+1:], "%d", &c.Line); err == nil && c.Line > 0 && c.Text != "" {
			return c, nil
		}
	}
	return c, &lockkeeper.InputError{Field: "comment", Value: text, Reason: "not PATH:LINE: TEXT", Next: `write it like "app/user.rb:12: keep the old name"`}
}

// quoted returns the line that a comment is about.
func quoted(tracker *progress.Tracker, unit string, f flow.File, c progress.LineComment) (string, error) {
	v := f.New
	if c.Old {
		v = f.Old
	}
	bad := func(reason string) error {
		return &lockkeeper.InputError{Field: "line", Value: fmt.Sprint(c.Line), Reason: c.Path + " " + reason, Next: "name a line of the diff"}
	}
	if !v.Exists() {
		return "", bad("does not exist in this version")
	}
	content, err := readSome(tracker.Kept(unit, c.Batch, v.Sum))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", bad("is no longer kept")
	case err != nil:
		return "", err
	case isBinary(content):
		return "", bad("is not text")
	}
	n := 0
	for line := range strings.Lines(string(content)) {
		if n++; n == c.Line {
			return strings.TrimRight(line, "\r\n"), nil
		}
	}
	return "", bad(fmt.Sprintf("has %d lines", n))
}

// commentTexts returns comments as agents read them.
func commentTexts(comments []progress.LineComment) (list []string) {
	for _, c := range comments {
		list = append(list, c.String())
	}
	return list
}

// noteComments leaves the unsent comments on a batch as notes for the agent of a phase. It returns them, so that the
// caller marks them as sent when the agent will get them.
func (d *Decider) noteComments(ctx context.Context, unit, batch, phase string) ([]progress.LineComment, error) {
	u, err := d.Tracker.Unit(ctx, unit)
	if err != nil || batch == "" {
		return nil, err
	}
	unsent := u.Unsent(batch)
	var left []progress.Note // notes of an earlier attempt that was refused
	if of, ok := d.Flow.Phase(phase); ok {
		left = u.Notes(batch, of)
	}
	for _, c := range unsent {
		if slices.ContainsFunc(left, func(n progress.Note) bool { return n.Text == c.String() }) {
			continue
		}
		if err := d.Tracker.AddNote(ctx, unit, progress.Note{Phase: phase, Batch: batch, Text: c.String(), By: c.By}); err != nil {
			return nil, err
		}
	}
	return unsent, nil
}

// returnReview returns a diff with a person's notes and the unsent comments on its lines.
func (d *Decider) returnReview(ctx context.Context, b *progress.Tracker, r progress.Ref, s AnswerInput) (string, error) {
	u, err := b.Unit(ctx, r.Unit)
	if err != nil {
		return "", err
	}
	unsent := u.Unsent(r.Batch)
	if err := b.ReturnReview(ctx, r.Unit, r.Batch, append(notEmpty(s.Notes), commentTexts(unsent)...), d.By.Name); err != nil {
		return "", err
	}
	return "is returned: it is changed as you say and tested again", d.Tracker.MarkSent(ctx, r.Unit, unsent, d.By.Name)
}

func notEmpty(notes []string) (list []string) {
	for _, n := range notes {
		if strings.TrimSpace(n) != "" {
			list = append(list, n)
		}
	}
	return list
}
