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

// A Question is a person's question about a unit, or about one item of it. An agent that only
// reads answers it, in the next run.
type Question struct {
	ID         string     `json:"id"` // question-1, question-2, …
	Item       string     `json:"item,omitempty"`
	Text       string     `json:"text"`
	By         string     `json:"by"`
	At         time.Time  `json:"at"`
	Answer     string     `json:"answer,omitempty"` // empty: no agent has answered yet
	AnsweredAt *time.Time `json:"answered_at,omitempty"`
}

type questions struct {
	Questions []Question `json:"questions"`
}

// Explanation is the question about an item whose text is empty.
const Explanation = "Explain this item: which code it is about, what happens there today and why that matters, and what would change. Quote the lines that show it."

// Questions lists the questions about the unit, in the order in which they were asked.
func (u *Unit) Questions() []Question {
	if u.docs.questions.value == nil {
		return nil
	}
	return u.docs.questions.value.Questions
}

// OpenQuestion returns a question that has no answer.
func (u *Unit) OpenQuestion(id string) (Question, bool) {
	i := slices.IndexFunc(u.Questions(), func(q Question) bool { return q.ID == id && q.Answer == "" })
	if i < 0 {
		return Question{}, false
	}
	return u.Questions()[i], true
}

// AskQuestion stores a question and returns its id.
func (b *Tracker) AskQuestion(ctx context.Context, unit string, q Question) (id string, err error) {
	q.Text = strings.TrimSpace(q.Text)
	err = b.personal(ctx, unit, q.By, func(u *Unit) error {
		if q.Item != "" {
			if _, ok := u.Item(q.Item); !ok {
				return &lockkeeper.InputError{Field: "item", Value: unit + "/" + q.Item, Reason: "no item has this id", Next: "lockkeeper decide show plan " + unit}
			}
		}
		if q.Text == "" && q.Item != "" {
			q.Text = Explanation
		}
		if q.Text == "" {
			return &lockkeeper.InputError{Field: "text", Value: q.Text, Reason: "empty", Next: "ask something"}
		}
		q.ID, q.At = fmt.Sprintf("question-%d", len(u.Questions())+1), b.time()
		id = q.ID
		return b.write(ctx, u.docs.questions.stored, questions{append(slices.Clone(u.Questions()), q)}, q.By)
	})
	return id, err
}

// AnswerQuestion stores the answer to an open question. It does nothing for another question.
func (b *Tracker) AnswerQuestion(ctx context.Context, unit, id, text string, calls []flow.Call) error {
	return b.act(ctx, unit, func(u *Unit) error {
		if _, open := u.OpenQuestion(id); !open {
			return nil // a run before a crash stored the answer
		}
		list := slices.Clone(u.Questions())
		i := slices.IndexFunc(list, func(q Question) bool { return q.ID == id })
		list[i].Answer, list[i].AnsweredAt = text, new(b.time())
		return b.write(ctx, u.docs.questions.stored, questions{list}, author(calls), calls...)
	})
}
