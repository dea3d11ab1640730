package progress

import (
	"context"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/sidecar"
)

// methodsFile stores the topics that the Messages API should answer.
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
			return all, refused("ask the API about "+t.ref(unit), "run the flow", "%s chose that at %s", all.Topics[at].By, stamp(all.Topics[at].At))
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
	r := &reader{unit: u, folder: u.folder}
	s := private[methods](ctx, r, methodsFile)
	return s, r.err
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
			return refused(act+" "+t.ref(unit), "undo that answer first", "it is %s by %s since %s", t.State, t.By, stamp(t.At))
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
			return u.folder.Remove(ctx, was.doc, methodsFile)
		}
		return replace(ctx, u.folder, was.doc, was.bad, methodsFile, all, sidecar.About{WrittenAt: b.time(), By: by})
	})
}
