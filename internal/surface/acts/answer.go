package acts

import (
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
)

// Seen holds the versions of decisions that a person saw. Others are not compared.
type Seen map[progress.Ref]string

func (s Seen) of(refs ...progress.Ref) map[progress.Ref]string {
	some := map[progress.Ref]string{}
	for _, r := range refs {
		if version, ok := s[r]; ok {
			some[r] = version
		}
	}
	return some
}

// AnswerInput is the optional part of an answer.
type AnswerInput struct {
	Notes []string `json:"notes,omitempty"`
	Was   string   `json:"was,omitempty"`  // the earlier decision on an item, if it changes: todo, defer or reject
	Only  bool     `json:"only,omitempty"` // do not decide equal items of other units
	Text  string   `json:"text,omitempty"` // text of an answer found elsewhere
	Seen  Seen     `json:"seen,omitempty"`
}

func (s AnswerInput) note() string { return strings.TrimSpace(strings.Join(s.Notes, "\n")) }

// Answer is a possible answer to decisions of a kind.
type Answer struct {
	Word  string        `json:"word"`
	Key   byte          `json:"-"` // shortcut; 0: none
	Kind  progress.Kind `json:"kind"`
	Means string        `json:"means"`
	Asks  string        `json:"asks,omitempty"` // what the required note must say; empty: no note is required

	give func(d *Decider, ctx context.Context, refs []progress.Ref, s AnswerInput, v *Verdict)
}

// Answers returns every possible answer. Every surface offers exactly these.
func Answers() []Answer {
	return []Answer{
		{"todo", 't', progress.ItemKind, "do it", "", decideAs(flow.Todo)},
		{"defer", 'd', progress.ItemKind, "later: it comes up again", "", decideAs(flow.Defer)},
		{"reject", 'r', progress.ItemKind, "never: the item is not proposed again", "", decideAs(flow.Reject)},
		{"answer", 0, progress.TopicKind, "what was found elsewhere", "", each(func(d *Decider, ctx context.Context, b *progress.Tracker, r progress.Ref, s AnswerInput) (string, error) {
			return "is answered", b.Answer(ctx, r.Unit, r.Topic, documents.MethodPaste, s.Text, d.By.Name)
		})},
		{"reject", 'r', progress.TopicKind, "it needs no answer", "why it needs no answer", each(func(d *Decider, ctx context.Context, b *progress.Tracker, r progress.Ref, s AnswerInput) (string, error) {
			return "is rejected", b.RejectTopic(ctx, r.Unit, r.Topic, s.note(), d.By.Name)
		})},
		{"api", 'a', progress.TopicKind, "ask the Messages API", "", each((*Decider).askAPI)},
		{"approve", 'a', progress.PlanKind, "the batches may be applied", "", each(func(d *Decider, ctx context.Context, b *progress.Tracker, r progress.Ref, _ AnswerInput) (string, error) {
			return "is approved", b.ApprovePlan(ctx, r.Unit, d.By.Name)
		})},
		{"approve", 'a', progress.ReviewKind, "it lands as it was shown", "", each(func(d *Decider, ctx context.Context, b *progress.Tracker, r progress.Ref, _ AnswerInput) (string, error) {
			return "is approved: it lands as it was shown", b.ApproveReview(ctx, r.Unit, r.Batch, d.By.Name)
		})},
		{"return", 'b', progress.ReviewKind, "sent back, changed as you say and tested again", "what must change", each((*Decider).returnReview)},
		{progress.Again, 'a', progress.FailureKind, "the batches are tested again, and agents fix what fails", "", answerFailure(progress.Again, "is answered: its batches are tested again")},
		{progress.Without, 'w', progress.FailureKind, "batches that fail in this way are left out, without a fix; the others continue", "", answerFailure(progress.Without, "is answered: the run continues without its batches")},
		{progress.Stop, 'x', progress.FailureKind, "the run stops", "", answerFailure(progress.Stop, "is answered: the run stops")},
		{"follow-up", 'f', progress.GapKind, "a separate batch makes the change", "", each((*Decider).followUp)},
		{"dismiss", 'd', progress.GapKind, "no change is made", "", each(func(d *Decider, ctx context.Context, b *progress.Tracker, r progress.Ref, _ AnswerInput) (string, error) {
			return "is dismissed", b.DismissGap(ctx, r.Unit, r.Batch, r.Gap, d.By.Name)
		})},
	}
}

func answerFailure(answer, what string) func(*Decider, context.Context, []progress.Ref, AnswerInput, *Verdict) {
	return each(func(d *Decider, ctx context.Context, b *progress.Tracker, r progress.Ref, _ AnswerInput) (string, error) {
		return what, b.AnswerFailure(ctx, r.Unit, r.Failure, answer, d.By.Name)
	})
}

func KindsOf(word string) (list []progress.Kind) {
	for _, a := range Answers() {
		if a.Word == word {
			list = append(list, a.Kind)
		}
	}
	return list
}

// each returns an answer that is given to each reference separately.
func each(give func(d *Decider, ctx context.Context, b *progress.Tracker, r progress.Ref, s AnswerInput) (string, error)) func(*Decider, context.Context, []progress.Ref, AnswerInput, *Verdict) {
	return func(d *Decider, ctx context.Context, refs []progress.Ref, s AnswerInput, v *Verdict) {
		for _, r := range refs {
			what, err := give(d, ctx, d.Tracker.IfUnchanged(s.Seen.of(r)), r, s)
			v.take(err, r, what)
		}
	}
}

func (d *Decider) Give(ctx context.Context, word string, refs []progress.Ref, s AnswerInput) (Verdict, error) {
	var v Verdict
	if err := d.checkAnswer(ctx, word, refs, s); err != nil {
		return v, err
	}
	for _, a := range Answers() {
		some := slices.DeleteFunc(slices.Clone(refs), func(r progress.Ref) bool { return r.Kind != a.Kind })
		if a.Word == word && len(some) > 0 {
			a.give(d, ctx, some, s, &v)
		}
	}
	return d.finish(ctx, v)
}

// checkAnswer refuses an invalid answer before any part of it is given.
func (d *Decider) checkAnswer(ctx context.Context, word string, refs []progress.Ref, s AnswerInput) error {
	kinds := KindsOf(word)
	if len(kinds) == 0 {
		return &lockkeeper.InputError{Field: "answer", Value: word, Reason: "unknown answer", Next: "use one of " + strings.Join(words(), ", ")}
	}
	if err := d.checkNamed(refs); err != nil {
		return err
	}
	if s.Was != "" && !slices.Contains([]string{"todo", "defer", "reject"}, s.Was) {
		return &lockkeeper.InputError{Field: "was", Value: s.Was, Reason: "unknown decision", Next: "use todo, defer or reject"}
	}
	commented := false // comments on lines say what to change, too
	for _, r := range refs {
		if !slices.Contains(kinds, r.Kind) {
			return &lockkeeper.InputError{Field: "reference", Value: r.String(), Reason: word + " does not answer a " + string(r.Kind), Next: d.Command("decide", "show", r.String())}
		}
		u, err := d.Unit(ctx, r.Unit)
		if err != nil {
			return err
		}
		commented = commented || r.Kind == progress.ReviewKind && len(u.Unsent(r.Batch)) > 0
	}
	for _, a := range Answers() {
		said := a.Asks == "" || s.note() != "" || commented
		if a.Word == word && !said && slices.ContainsFunc(refs, func(r progress.Ref) bool { return r.Kind == a.Kind }) {
			return &lockkeeper.InputError{Field: "note", Reason: word + " needs a note: " + a.Asks, Next: "add a note: --note, or notes in the HTTP API"}
		}
	}
	return nil
}

func (d *Decider) checkNamed(refs []progress.Ref) error {
	switch {
	case len(refs) == 0:
		return &lockkeeper.InputError{Field: "reference", Reason: "no reference is given", Next: d.Command("decide")}
	case slices.Contains(refs, progress.Ref{}):
		return &lockkeeper.InputError{Field: "reference", Reason: "a reference is empty", Next: d.Command("decide")}
	}
	return nil
}

func words() (list []string) {
	for _, a := range Answers() {
		if !slices.Contains(list, a.Word) {
			list = append(list, a.Word)
		}
	}
	return list
}

// askAPI marks a topic for the Messages API, which needs a key.
func (d *Decider) askAPI(ctx context.Context, b *progress.Tracker, r progress.Ref, _ AnswerInput) (string, error) {
	if !conduct.CanAskAPI(d.App) {
		return "", &lockkeeper.RefusedError{Act: "ask the API about " + r.String(), Reason: "ANTHROPIC_API_KEY is not set, so topics can only be answered by pasting what was found elsewhere",
			Next: d.Command("decide", "answer", r.String(), "FILE") + ", or set the key here and where lockkeeper run runs"}
	}
	return "will be answered by the API", b.ChooseAPI(ctx, r.Unit, r.Topic, d.By.Name)
}

// Gives reports whether an answer with this word can be given to an open decision. The follow-up
// of a gap outside of the allowlist could not land.
func (d *Decider) Gives(ctx context.Context, word string, r progress.Ref) bool {
	return word != "follow-up" || d.checkFollowUp(ctx, r) == nil
}

func (d *Decider) checkFollowUp(ctx context.Context, r progress.Ref) error {
	u, err := d.Tracker.Unit(ctx, r.Unit)
	if err != nil {
		return err
	}
	if b, known := u.Batch(r.Batch); known {
		if g, known := b.Gap(r.Gap); known {
			return conduct.CheckTargets(d.App, []string{g.Path})
		}
	}
	return nil // the answer reports what is unknown
}

// followUp adds a batch that makes the change of a gap.
func (d *Decider) followUp(ctx context.Context, b *progress.Tracker, r progress.Ref, _ AnswerInput) (string, error) {
	if err := d.checkFollowUp(ctx, r); err != nil {
		return "", err
	}
	change, err := d.changeOf(ctx, r)
	if err != nil {
		return "", err
	}
	id, err := b.FollowUpGap(ctx, r.Unit, r.Batch, r.Gap, change, d.By.Name)
	return "is followed up by batch " + id + ", which waits for approval: plan " + r.Unit, err
}

// Withdraw withdraws answers that no later phase has used.
func (d *Decider) Withdraw(ctx context.Context, refs []progress.Ref) (Verdict, error) {
	var v Verdict
	if err := d.checkNamed(refs); err != nil {
		return v, err
	}
	for _, r := range refs {
		what, err := d.withdraw(ctx, r)
		v.take(err, r, what)
	}
	return d.finish(ctx, v)
}

func (d *Decider) withdraw(ctx context.Context, r progress.Ref) (what string, err error) {
	u, err := d.Unit(ctx, r.Unit)
	if err != nil {
		return "", err
	}
	by := d.By.Name
	switch r.Kind {
	case progress.TopicKind:
		asked, err := d.Tracker.ByAPI(ctx, u)
		if err == nil && slices.Contains(asked, r.Topic) {
			return "waits for people again", d.Tracker.WithdrawAPI(ctx, r.Unit, r.Topic, by)
		}
		if err != nil {
			return "", err
		}
		return "waits for an answer again", d.Tracker.ReopenTopic(ctx, r.Unit, r.Topic, by)
	case progress.ItemKind:
		item, ok := u.Item(r.Item)
		if ok && item.Decision == "" {
			return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "it has no decision", Next: d.Command("decide", "todo", r.String())}
		}
		what = becomes("")
		if item.Added {
			what = "is gone"
		}
		return what, d.Tracker.Decide(ctx, r.Unit, by, progress.Choice{Item: r.Item, Was: item.Decision})
	case progress.PlanKind:
		return "waits for approval again", d.Tracker.WithdrawApproval(ctx, r.Unit, by)
	case progress.GapKind:
		return "is open again", d.Tracker.ReopenGap(ctx, r.Unit, r.Batch, r.Gap, by)
	}
	if r.Kind == progress.FailureKind {
		return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "the run acts on it at once", Next: d.Command("decide", progress.Again, r.String()) + ", if its batches were left out"}
	}
	return "", &lockkeeper.RefusedError{Act: "undo " + r.String(), Reason: "a review takes effect at once", Next: d.Command("undo", r.Unit+"/"+r.Batch) + ", after it has landed"}
}
