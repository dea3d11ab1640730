package progress

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/sidecar"
)

// A TopicState is the state of a topic.
type TopicState string

// The states of a topic.
const (
	Pending  TopicState = "pending"  // open
	Done     TopicState = "done"     // answered
	Rejected TopicState = "rejected" // needs no answer
)

// A Topic is a question to research, with its answer.
type Topic struct {
	flow.Topic
	State  TopicState `json:"state"`
	Method string     `json:"method,omitempty"` // sidecar.MethodAPI or sidecar.MethodPaste
	Text   string     `json:"text,omitempty"`   // the answer, or why it was rejected
	By     string     `json:"by,omitempty"`
	At     time.Time  `json:"at,omitzero"`
}

// topics returns the topics of the analysis. The answer to another question with the same slug
// does not count. An empty rejection is an answer that was undone.
func (u *Unit) topics() (list []Topic) {
	for _, t := range u.Analysis.Topics {
		topic := Topic{Topic: t, State: Pending}
		text := u.docs.texts[t.Slug]
		if text != nil && strings.TrimSpace(text.Body) != "" && (text.Prompt == "" || text.Prompt == t.Prompt) {
			topic.State, topic.Method, topic.Text, topic.By, topic.At = Done, text.Method, text.Body, text.By, text.At
			if text.Method == sidecar.MethodRejected {
				topic.State, topic.Method = Rejected, ""
			}
		}
		list = append(list, topic)
	}
	return list
}

// Answer stores the answer to a topic. Method is sidecar.MethodPaste or MethodAPI.
func (b *Tracker) Answer(ctx context.Context, unit, slug, method, text, by string) error {
	if method != sidecar.MethodPaste && method != sidecar.MethodAPI {
		return &lockkeeper.InputError{Field: "method", Value: method, Reason: "unknown method", Next: "use " + sidecar.MethodPaste + " or " + sidecar.MethodAPI}
	}
	return b.answer(ctx, "answer", unit, slug, method, text, by)
}

// RejectTopic records that a topic needs no answer, and why.
func (b *Tracker) RejectTopic(ctx context.Context, unit, slug, reason, by string) error {
	return b.answer(ctx, "reject", unit, slug, sidecar.MethodRejected, reason, by)
}

func (b *Tracker) answer(ctx context.Context, act, unit, slug, method, text, by string) error {
	if strings.TrimSpace(text) == "" {
		return &lockkeeper.InputError{Field: "text", Value: text, Reason: "the text is empty", Next: "write what was found, or reject the topic and say why"}
	}
	return b.setTopic(ctx, act, unit, slug, by, func(t Topic) (*sidecar.Text, error) {
		if t.State != Pending {
			return nil, refused(act+" "+t.ref(unit), "undo that answer first", "it is %s by %s since %s", t.State, t.By, stamp(t.At))
		}
		return &sidecar.Text{Prompt: t.Prompt, Method: method, By: by, At: b.time(), Body: text}, nil
	})
}

// ReopenTopic undoes the answer to a topic, until the extract is made from it.
func (b *Tracker) ReopenTopic(ctx context.Context, unit, slug, by string) error {
	return b.setTopic(ctx, "reopen", unit, slug, by, func(t Topic) (*sidecar.Text, error) {
		if t.State == Pending {
			return nil, refused("reopen "+t.ref(unit), "answer or reject it", "it has no answer")
		}
		return &sidecar.Text{Prompt: t.Prompt, Method: sidecar.MethodRejected, By: by, At: b.time()}, nil
	})
}

func (t Topic) ref(unit string) string {
	return Ref{Kind: TopicKind, Unit: unit, Topic: t.Slug}.String()
}

// setTopic replaces the text of a topic, until the extract is made.
func (b *Tracker) setTopic(ctx context.Context, act, unit, slug, by string, decide func(Topic) (*sidecar.Text, error)) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		what := fmt.Sprintf("%s topic %s/%s", act, unit, slug)
		if u.Analysis == nil {
			return refused(what, "wait until it is analyzed", "%s is %s and has no topics", unit, u.Status())
		}
		at := slices.IndexFunc(u.Topics, func(t Topic) bool { return t.Slug == slug })
		if at < 0 {
			return &lockkeeper.InputError{Field: "topic", Value: slug, Reason: unit + " has no such topic", Next: "use one of " + u.slugs()}
		}
		if u.Extract != nil {
			return refused(what, "run the phase extract again", "its answers were read at %s, %s is %s", stamp(since(u.docs.extract.doc)), unit, u.Status())
		}
		text, err := decide(u.Topics[at])
		if err != nil {
			return err
		}
		return u.folder.WriteText(ctx, slug, *text)
	})
}

func (u *Unit) slugs() string {
	var list []string
	for _, t := range u.Topics {
		list = append(list, t.Slug)
	}
	return strings.Join(list, ", ")
}
