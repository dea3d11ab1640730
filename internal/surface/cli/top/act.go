package top

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// answerKeys returns the keys that answer an open decision.
func (m *model) answerKeys(ref progress.Ref) (list []binding) {
	d, open := m.decision(ref)
	if !open {
		return nil
	}
	for _, a := range acts.Answers() {
		if a.Kind == ref.Kind && a.Key != 0 {
			list = append(list, binding{string(a.Key), a.Word + ": " + a.Means, then(func(m *model) { m.confirm(a, d) })})
		}
	}
	return list
}

// decision returns an open decision as it is on the screen.
func (m *model) decision(ref progress.Ref) (view.OpenDecision, bool) {
	if d := m.seen.decision; d != nil && d.Ref == ref {
		return d.OpenDecision, d.Waits
	}
	if q := m.seen.decisions; q != nil && m.open.ref != ref {
		for _, d := range q.Open {
			if d.Ref == ref {
				return d, true
			}
		}
	}
	return view.OpenDecision{}, false
}

// confirm asks before an answer is given, for the note that it needs or for yes.
func (m *model) confirm(a acts.Answer, d view.OpenDecision) {
	flow, ref, version := m.flow(), d.Ref, d.Version
	facts := []string{paint(bold, oneLine(ref.String())) + "  " + oneLine(d.Title)}
	if n := len(d.Same); n > 0 && a.Kind == progress.ItemKind {
		facts = append(facts, fmt.Sprintf("also %s of other units with the same text", term.Counted(n, "item")))
	}
	give := func(m *model, note string) tea.Cmd {
		m.do("deciding", func(ctx context.Context) (string, error) {
			in := acts.AnswerInput{Seen: acts.Seen{ref: version}}
			if note != "" {
				in.Notes = []string{note}
			}
			by, err := m.decider(ctx, flow)
			if err != nil {
				return "", err
			}
			return verdict(by.Give(ctx, a.Word, []progress.Ref{ref}, in))
		})
		m.given = []progress.Ref{ref}
		if m.open.ref == ref {
			m.back()
		}
		return nil
	}
	m.ask = &question{facts: facts, text: a.Word + ": " + a.Means + "?", yes: give}
	if a.Asks != "" {
		m.ask.text, m.ask.typed = a.Word+", "+a.Asks+": ", true
	}
}

// verdict returns what an act did in one line.
func verdict(v acts.Verdict, err error) (string, error) {
	if err := errors.Join(append(v.Refused, err)...); err != nil {
		return "", err
	}
	return term.JoinFew(v.Done, 3, func(d acts.Done) string { return d.Ref.String() + " " + d.What }), nil
}

// withdraw withdraws the last answer of this screen.
func (m *model) withdraw() {
	refs, flow := m.given, m.flow()
	m.ask = &question{text: "Withdraw the answer to " + oneLine(term.Join(refs, progress.Ref.String)) + "?", yes: func(m *model, _ string) tea.Cmd {
		m.given = nil
		m.do("withdrawing an answer", func(ctx context.Context) (string, error) {
			by, err := m.decider(ctx, flow)
			if err != nil {
				return "", err
			}
			return verdict(by.Withdraw(ctx, refs))
		})
		return nil
	}}
}

// flow returns the flow on the screen.
func (m *model) flow() string {
	if n := m.seen.now; n != nil {
		return n.Run.Flow
	}
	return ""
}

// causeKeys returns what can be done about a cause of failures.
func (m *model) causeKeys(id string) []binding {
	c, known := m.cause(id)
	if !known {
		return nil
	}
	of := acts.OfCause{Cause: c.ID, Was: len(c.Failures)}
	return []binding{
		{"r", fmt.Sprintf("Retry all %d", len(c.Failures)), then(func(m *model) { m.forAll(c, "Retry", acts.RetryCause{OfCause: of}.Do) })},
		{"x", fmt.Sprintf("Exclude all %d from runs", len(c.Failures)), then(func(m *model) { m.forAll(c, "Exclude", acts.ExcludeCause{OfCause: of}.Do) })},
	}
}

// forAll asks for an act on everything that failed for one reason.
func (m *model) forAll(c conduct.Cause, act string, do func(context.Context, *acts.Decider) (acts.Verdict, error)) {
	flow := m.flow()
	names := term.JoinFew(c.Names(), 8, oneLine)
	m.ask = &question{facts: []string{oneLine(c.Title), paint(dim, names)}, text: act + " " + term.Counted(len(c.Failures), "failure") + "?", yes: func(m *model, _ string) tea.Cmd {
		m.do(strings.ToLower(act), func(ctx context.Context) (string, error) {
			by, err := m.decider(ctx, flow)
			if err != nil {
				return "", err
			}
			v, err := do(ctx, by)
			said, err := verdict(v, err)
			return said + resumes(v), err
		})
		return nil
	}}
}

// resumes says what must happen so that retried work runs.
func resumes(v acts.Verdict) string {
	if v.Conductor == "" {
		return "; no process runs the flow: lockkeeper run"
	}
	return ""
}

// retryItem retries one failed item.
func (m *model) retryItem(it *view.Item) {
	item := it.Why.Item
	m.ask = &question{text: "Retry " + oneLine(strings.Trim(it.Unit+"/"+it.Part, "/")) + " " + item.ID + "?", yes: func(m *model, _ string) tea.Cmd {
		m.do("retrying", func(ctx context.Context) (string, error) {
			by, err := m.decider(ctx, it.Flow)
			if err != nil {
				return "", err
			}
			return verdict(by.RetryItem(ctx, &item, ""))
		})
		return nil
	}}
}
