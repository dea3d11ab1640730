package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"lockkeeper"
)

// Digest returns the SHA-256 of the definition of a batch. Documents made from another
// definition do not count.
func Digest(b Batch) string {
	for _, list := range []*[]string{&b.Items, &b.WriteTargets} { // null and [] are the same
		if *list == nil {
			*list = []string{}
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic(fmt.Sprintf("flow: batch %s: %v", b.ID, err)) // cannot happen: a Batch has only strings and lists
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Number makes a plan from an agent's answer. It sorts the batches so that each follows the batches
// in its After, then names them b1, b2, ….
func Number(p Plan) (Plan, error) {
	if f := unique("batches", p.Batches, func(b Batch) string { return b.ID }); f != nil {
		return Plan{}, f.in("plan")
	}
	ordered, err := inOrder(p.Batches)
	if err != nil {
		return Plan{}, err
	}
	ids := map[string]string{}
	for i, b := range ordered {
		ids[b.ID] = fmt.Sprintf("b%d", i+1)
	}
	for i, b := range ordered {
		b = copied(b)
		b.ID, b.WriteTargets = ids[b.ID], Targets(b.WriteTargets)
		for n, id := range b.After {
			b.After[n] = ids[id]
		}
		ordered[i] = b
	}
	return Plan{Batches: ordered}, nil
}

func copied(b Batch) Batch {
	for _, list := range []*[]string{&b.Items, &b.WriteTargets, &b.Reads, &b.After, &b.Tests} {
		*list = slices.Clone(*list)
	}
	return b
}

// inOrder sorts the batches so that each follows the batches in its After. It otherwise keeps the
// order.
func inOrder(batches []Batch) ([]Batch, error) {
	known := map[string]bool{}
	for _, b := range batches {
		known[b.ID] = true
	}
	for _, b := range batches {
		for _, id := range b.After {
			if !known[id] {
				return nil, wrong(b.ID, fmt.Sprintf("comes after the unknown batch %q", id), "name one of "+strings.Join(sortedKeys(known), ", "))
			}
		}
	}
	done := map[string]bool{}
	ordered := make([]Batch, 0, len(batches))
	for rest := slices.Clone(batches); len(rest) > 0; {
		i := slices.IndexFunc(rest, func(b Batch) bool {
			return !slices.ContainsFunc(b.After, func(id string) bool { return !done[id] })
		})
		if i < 0 {
			return nil, &circleError{circle(rest)}
		}
		done[rest[i].ID] = true
		ordered = append(ordered, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return ordered, nil
}

type circleError struct{ ids []string } // each batch depends on the next; the first id is repeated at the end

func (e *circleError) Error() string {
	return lockkeeper.JoinNext("each of these comes after the next: "+strings.Join(e.ids, ", "), e.NextStep())
}

func (e *circleError) NextStep() string { return "remove one of the dependencies" }

func (e *circleError) Code() lockkeeper.Code { return lockkeeper.CodeInput }

// circle returns the ids of batches that depend on each other. Each given batch depends on another
// given batch.
func circle(waiting []Batch) []string {
	after := map[string]string{}
	for _, b := range waiting {
		for _, id := range b.After {
			if slices.ContainsFunc(waiting, func(w Batch) bool { return w.ID == id }) {
				after[b.ID] = id
				break
			}
		}
	}
	var path []string
	for id := waiting[0].ID; ; id = after[id] {
		if i := slices.Index(path, id); i >= 0 {
			return append(path[i:], id)
		}
		path = append(path, id)
	}
}

// CheckPlan checks a plan against the TODO items. Each TODO item must be in exactly one batch and
// no other item in any, dependencies must come first, and targets must be files. Risks are
// returned as warnings.
func CheckPlan(p Plan, todo []Decided) (warnings []string, err error) {
	if f := checkBatches(p); f != nil {
		return nil, f.in("plan")
	}
	open := map[string]*Decided{}
	for i := range todo {
		if todo[i].Decision == Todo {
			open[todo[i].ID] = &todo[i]
		}
	}
	var problems []error
	planned := map[string]bool{}
	for _, b := range p.Batches {
		if len(b.Items) == 0 {
			problems = append(problems, wrong(b.ID, "a batch without items", "give it an item, or remove it"))
		}
		if len(b.WriteTargets) == 0 {
			problems = append(problems, wrong(b.ID, "a batch without write targets could change nothing", "name the files that it will change"))
		}
		for _, id := range b.Items {
			planned[id] = true
			it := open[id]
			switch {
			case it == nil:
				problems = append(problems, wrong(id, fmt.Sprintf("in batch %s, but its decision is not TODO", b.ID), "remove it from the batch, or decide TODO"))
			case it.Effort == High && len(b.Items) > 1:
				warnings = append(warnings, fmt.Sprintf("item %s is of high effort and shares batch %s with %d others", id, b.ID, len(b.Items)-1))
			}
		}
	}
	for _, id := range sortedKeys(open) {
		if !planned[id] {
			problems = append(problems, wrong(id, "decided as TODO, but in no batch", "add it to a batch"))
		}
	}
	return append(warnings, overlaps(p)...), errors.Join(problems...)
}

// overlaps warns about files that several batches change.
func overlaps(p Plan) (warnings []string) {
	by := map[string][]string{}
	for _, b := range p.Batches {
		for _, target := range Targets(b.WriteTargets) {
			by[target] = append(by[target], b.ID)
		}
	}
	for _, target := range sortedKeys(by) {
		if ids := by[target]; len(ids) > 1 {
			warnings = append(warnings, fmt.Sprintf("%s is changed by %s, which will wait for each other", target, strings.Join(ids, ", ")))
		}
	}
	return warnings
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Numbered gives every possible item a unique id.
func (e Extract) Numbered() Extract {
	items := slices.Clone(e.Items)
	for i := range items {
		items[i].ID = fmt.Sprintf("i%d", i+1)
	}
	return Extract{items}
}

// Slugged gives every topic a unique slug from its prompt.
func (a Analysis) Slugged() Analysis {
	a.Topics = slices.Clone(a.Topics)
	taken := map[string]bool{}
	for i := range a.Topics {
		base := slug(a.Topics[i].Prompt)
		name := base
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[name], a.Topics[i].Slug = true, name
	}
	return a
}

// slug returns the first words of a text as part of a file name.
func slug(prompt string) string {
	const enough = 60
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToLower(prompt), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if b.Len()+1+len(word) > enough {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(word)
	}
	if b.Len() == 0 {
		return "topic"
	}
	return b.String()
}
