package progress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

type TopicState string

// The states of a topic.
const (
	Pending  TopicState = "pending"  // the topic is open
	Done     TopicState = "done"     // answered
	Rejected TopicState = "rejected" // the topic needs no answer
)

// answered returns the word for the state of a topic that is not open.
func (t Topic) answered() string {
	if t.State == Done {
		return "answered"
	}
	return string(t.State)
}

// A Topic is a question to research, with its answer.
type Topic struct {
	flow.Topic
	State  TopicState `json:"state"`
	Method string     `json:"method,omitempty"` // documents.MethodAPI or documents.MethodPaste
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
			if text.Method == documents.MethodRejected {
				topic.State, topic.Method = Rejected, ""
			}
		}
		list = append(list, topic)
	}
	return list
}

// Answer stores the answer to a topic. Method is documents.MethodPaste or MethodAPI.
func (b *Tracker) Answer(ctx context.Context, unit, slug, method, text, by string) error {
	if method != documents.MethodPaste && method != documents.MethodAPI {
		return &lockkeeper.InputError{Field: "method", Value: method, Reason: "unknown method", Next: "use " + documents.MethodPaste + " or " + documents.MethodAPI}
	}
	return b.answer(ctx, "answer", unit, slug, method, text, by)
}

// RejectTopic records that a topic needs no answer, and why.
func (b *Tracker) RejectTopic(ctx context.Context, unit, slug, reason, by string) error {
	return b.answer(ctx, "reject", unit, slug, documents.MethodRejected, reason, by)
}

func (b *Tracker) answer(ctx context.Context, act, unit, slug, method, text, by string) error {
	if strings.TrimSpace(text) == "" {
		return &lockkeeper.InputError{Field: "text", Value: text, Reason: "the text is empty", Next: "write what was found, or reject the topic and say why"}
	}
	return b.setTopic(ctx, act, unit, slug, by, func(t Topic) (*documents.Text, error) {
		if t.State != Pending {
			return nil, refused(act+" "+t.ref(unit), "undo the answer first", "it was %s by %s at %s", t.answered(), t.By, stamp(t.At))
		}
		return &documents.Text{Prompt: t.Prompt, Method: method, By: by, At: b.time(), Body: text}, nil
	})
}

// ReopenTopic undoes the answer to a topic. It fails after the extract was made from the answer.
func (b *Tracker) ReopenTopic(ctx context.Context, unit, slug, by string) error {
	return b.setTopic(ctx, "reopen", unit, slug, by, func(t Topic) (*documents.Text, error) {
		if t.State == Pending {
			return nil, refused("reopen "+t.ref(unit), "answer or reject it", "it has no answer")
		}
		return &documents.Text{Prompt: t.Prompt, Method: documents.MethodRejected, By: by, At: b.time()}, nil
	})
}

func (t Topic) ref(unit string) string {
	return Ref{Kind: TopicKind, Unit: unit, Topic: t.Slug}.String()
}

// setTopic replaces the text of a topic. It fails after the extract was made.
func (b *Tracker) setTopic(ctx context.Context, act, unit, slug, by string, decide func(Topic) (*documents.Text, error)) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		what := fmt.Sprintf("%s topic %s/%s", act, unit, slug)
		if u.Analysis == nil {
			return refused(what, "wait until it is analyzed", "%s is %s and has no topics", unit, u.Status())
		}
		at := slices.IndexFunc(u.Topics, func(t Topic) bool { return t.Slug == slug })
		if at < 0 {
			return &lockkeeper.InputError{Field: "topic", Value: slug, Reason: unit + " has no such topic", Next: "use one of " + listOf(u.Topics, func(t Topic) string { return t.Slug })}
		}
		if u.Extract != nil {
			return refused(what, "run the phase extract again", "the phase extract read its answers at %s, and %s is %s", stamp(u.docs.extract.since()), unit, u.Status())
		}
		text, err := decide(u.Topics[at])
		if err != nil {
			return err
		}
		return u.folder.WriteText(ctx, slug, *text)
	})
}

const methodsFile = "methods.json"

type methods struct {
	Topics []asked `json:"api"`
}

// An asked is the choice for one topic. It applies only to the same question, not to another one
// with the same slug.
type asked struct {
	flow.Topic
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// ChooseAPI sends an open topic to the Messages API. Other topics still wait for people.
func (b *Tracker) ChooseAPI(ctx context.Context, unit, slug, by string) error {
	return b.choose(ctx, "ask the API about", unit, slug, by, func(t Topic, all methods) (methods, error) {
		if at := all.find(t); at >= 0 {
			return all, refused("ask the API about "+t.ref(unit), "run the flow", "%s already chose this at %s", all.Topics[at].By, stamp(all.Topics[at].At))
		}
		all.Topics = slices.DeleteFunc(all.Topics, func(a asked) bool { return a.Slug == slug })
		all.Topics = append(all.Topics, asked{Topic: t.Topic, By: by, At: b.time()})
		return all, nil
	})
}

// WithdrawAPI undoes ChooseAPI, until the topic is answered.
func (b *Tracker) WithdrawAPI(ctx context.Context, unit, slug, by string) error {
	return b.choose(ctx, "leave to people", unit, slug, by, func(t Topic, all methods) (methods, error) {
		at := all.find(t)
		if at < 0 {
			return all, refused("leave "+t.ref(unit)+" to people", "answer or reject it", "it already waits for people")
		}
		all.Topics = slices.Delete(all.Topics, at, at+1)
		return all, nil
	})
}

// ByAPI lists the slugs of the open topics that the Messages API should answer.
func (b *Tracker) ByAPI(ctx context.Context, u *Unit) (slugs []string, err error) {
	all, err := u.methods(ctx)
	if err != nil || all.value == nil {
		return nil, err
	}
	for _, t := range u.Topics {
		if t.State == Pending && all.value.find(t) >= 0 {
			slugs = append(slugs, t.Slug)
		}
	}
	return slugs, nil
}

func (u *Unit) methods(ctx context.Context) (loaded[methods], error) {
	r := newReader(ctx, u, u.folder)
	s := private[methods](ctx, r, methodsFile)
	return s, errors.Join(r.err, r.open.Close())
}

func (m methods) find(t Topic) int {
	return slices.IndexFunc(m.Topics, func(a asked) bool { return a.Topic == t.Topic })
}

// choose changes how an open topic is answered.
func (b *Tracker) choose(ctx context.Context, act, unit, slug, by string, change func(Topic, methods) (methods, error)) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		at := slices.IndexFunc(u.Topics, func(t Topic) bool { return t.Slug == slug })
		if at < 0 {
			return &lockkeeper.InputError{Field: "topic", Value: slug, Reason: unit + " has no such topic", Next: "list open decisions: lockkeeper decide"}
		}
		if t := u.Topics[at]; t.State != Pending {
			return refused(act+" "+t.ref(unit), "undo the answer first", "it was %s by %s at %s", t.answered(), t.By, stamp(t.At))
		}
		was, err := u.methods(ctx)
		if err != nil {
			return err
		}
		var all methods
		if was.value != nil {
			all.Topics = slices.Clone(was.value.Topics)
		}
		if all, err = change(u.Topics[at], all); err != nil {
			return err
		}
		if len(all.Topics) == 0 {
			return was.remove(ctx)
		}
		return b.write(ctx, was.stored, all, by)
	})
}
