package progress

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
)

// A LineComment is a person's comment on a line of the diff of a batch, for the next agent that changes the
// batch. People can change it until it is sent.
type LineComment struct {
	ID    string     `json:"id"` // comment-1, comment-2, …
	Batch string     `json:"batch"`
	Path  string     `json:"path"`
	Line  int        `json:"line"`          // number of the line, from 1
	Old   bool       `json:"old,omitempty"` // the line is of the original, which the batch changes or removes
	Quote string     `json:"quote"`         // the line
	Text  string     `json:"text"`
	By    string     `json:"by"`
	At    time.Time  `json:"at"`
	Sent  *time.Time `json:"sent_at,omitempty"` // nil: no agent has it yet
}

type lineComments struct {
	Comments []LineComment `json:"comments"`
	Last     int           `json:"last"` // number of the last comment; ids are never used again
}

// String returns what the agent reads: path:line: text, and the line as a quotation.
func (c LineComment) String() string {
	where := fmt.Sprintf("%s:%d", c.Path, c.Line)
	if c.Old {
		where += " (of the original)"
	}
	return where + ": " + c.Text + "\n> " + c.Quote
}

// Comments lists the comments on the lines of a batch, in the order in which they were written.
func (u *Unit) Comments(batch string) (list []LineComment) {
	if u.docs.comments.value == nil {
		return nil
	}
	for _, c := range u.docs.comments.value.Comments {
		if c.Batch == batch {
			list = append(list, c)
		}
	}
	return list
}

// Unsent lists the comments on the lines of a batch that no agent has yet.
func (u *Unit) Unsent(batch string) []LineComment {
	return slices.DeleteFunc(u.Comments(batch), func(c LineComment) bool { return c.Sent != nil })
}

// These constants limit what people write about lines.
const (
	commentsMost  = 200   // unsent comments of a unit
	commentLength = 4_000 // characters of a comment
	quoteLength   = 400   // characters of a quoted line
)

// Comment stores a comment on a line of a batch and returns its id. The function quote returns the line.
func (b *Tracker) Comment(ctx context.Context, unit string, c LineComment, quote func(flow.File, LineComment) (string, error)) (id string, err error) {
	c.Text = strings.TrimSpace(c.Text)
	if err := checkComment(c.Text); err != nil {
		return "", err
	}
	err = b.personal(ctx, unit, c.By, func(u *Unit) error {
		is, err := u.needBatch("comment on", c.Batch)
		if err != nil {
			return err
		}
		files := is.Files()
		at := slices.IndexFunc(files, func(f flow.File) bool { return f.Path == c.Path })
		if at < 0 {
			return &lockkeeper.InputError{Field: "path", Value: c.Path, Reason: unit + "/" + c.Batch + " does not change this file", Next: "use one of " + listOf(files, func(f flow.File) string { return f.Path })}
		}
		if c.Quote, err = quote(files[at], c); err != nil {
			return err
		}
		if runes := []rune(c.Quote); len(runes) > quoteLength {
			c.Quote = string(runes[:quoteLength]) + "…"
		}
		all := u.comments()
		if len(slices.DeleteFunc(slices.Clone(all.Comments), func(c LineComment) bool { return c.Sent != nil })) >= commentsMost {
			return refused("comment on "+unit+"/"+c.Batch, "send them: return the diff, or repeat a phase", "%d comments are not sent yet", commentsMost)
		}
		all.Last++
		c.ID, c.At = fmt.Sprintf("comment-%d", all.Last), b.time()
		id, all.Comments = c.ID, append(all.Comments, c)
		return b.write(ctx, u.docs.comments.stored, all, c.By)
	})
	return id, err
}

func checkComment(text string) error {
	if text == "" {
		return &lockkeeper.InputError{Field: "text", Reason: "empty", Next: "say what to change"}
	}
	if n := len([]rune(text)); n > commentLength {
		return &lockkeeper.InputError{Field: "text", Reason: fmt.Sprintf("%d characters long", n), Next: fmt.Sprintf("use at most %d characters", commentLength)}
	}
	return nil
}

// EditComment changes the text of a comment that is not sent. An empty text removes it.
func (b *Tracker) EditComment(ctx context.Context, unit, batch, id, text, by string) error {
	text = strings.TrimSpace(text)
	if text != "" {
		if err := checkComment(text); err != nil {
			return err
		}
	}
	return b.personal(ctx, unit, by, func(u *Unit) error {
		all := u.comments()
		at := slices.IndexFunc(all.Comments, func(c LineComment) bool { return c.ID == id && c.Batch == batch })
		switch {
		case at < 0:
			return &lockkeeper.InputError{Field: "id", Value: id, Reason: unit + "/" + batch + " has no such comment", Next: "lockkeeper decide show review " + unit + "/" + batch}
		case all.Comments[at].Sent != nil:
			return refused("change "+id+" of "+unit+"/"+batch, "write another comment", "it was sent at %s", stamp(*all.Comments[at].Sent))
		case text == "":
			all.Comments = slices.Delete(all.Comments, at, at+1)
		default:
			all.Comments[at].Text, all.Comments[at].By, all.Comments[at].At = text, by, b.time()
		}
		return b.write(ctx, u.docs.comments.stored, all, by)
	})
}

// MarkSent records that an agent gets these comments.
func (b *Tracker) MarkSent(ctx context.Context, unit string, sent []LineComment, by string) error {
	if len(sent) == 0 {
		return nil
	}
	return b.act(ctx, unit, func(u *Unit) error {
		all := u.comments()
		for i := range all.Comments {
			c := &all.Comments[i]
			if c.Sent == nil && slices.ContainsFunc(sent, func(s LineComment) bool { return s.ID == c.ID && s.Text == c.Text }) {
				c.Sent = new(b.time())
			}
		}
		return b.write(ctx, u.docs.comments.stored, all, by)
	})
}

// comments returns a copy of the comments of the unit.
func (u *Unit) comments() (all lineComments) {
	if is := u.docs.comments.value; is != nil {
		all = *is
		all.Comments = slices.Clone(is.Comments)
	}
	return all
}
