package flows

import (
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
)

// kinds are the kinds of references, in the order in which work comes to them.
func kinds() []progress.Kind {
	return []progress.Kind{progress.TopicKind, progress.ItemKind, progress.PlanKind, progress.ReviewKind, progress.GapKind}
}

// refs reads references of some kinds, each of one word or, with its kind, two.
func (d *decider) refs(ctx context.Context, words []string, of ...progress.Kind) (list []progress.Ref, err error) {
	for len(words) > 0 {
		ref, rest, err := d.ref(ctx, words, of...)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, ref) {
			list = append(list, ref)
		}
		words = rest
	}
	return list, nil
}

// ref reads the reference at the beginning of what was typed, and returns what is behind
// it. Without its kind it has to be clear what it names.
func (d *decider) ref(ctx context.Context, words []string, of ...progress.Kind) (ref progress.Ref, rest []string, err error) {
	text, rest := words[0], words[1:]
	if slices.Contains(kinds(), progress.Kind(text)) && len(rest) > 0 {
		text, rest = text+" "+rest[0], rest[1:]
	}
	if strings.Contains(text, " ") {
		if ref, err = progress.ParseRef(text); err != nil {
			return ref, nil, err
		}
		if !slices.Contains(of, ref.Kind) {
			return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "this is for a reference of the kind " + alternatives(of), Next: d.desk.Command("decide", "show", ref.String())}
		}
		_, err = d.desk.Unit(ctx, ref.Unit)
		return ref, rest, err
	}
	var found []progress.Ref
	for _, kind := range of {
		ref, err := progress.ParseRef(string(kind) + " " + text)
		if err != nil {
			continue
		}
		there, err := d.desk.Has(ctx, ref)
		if err != nil {
			return ref, nil, err
		}
		if there {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 0:
		return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "it names no " + alternatives(of) + " of the flow " + d.desk.Flow.Name, Next: d.desk.Command("decide")}
	case 1:
		return found[0], rest, nil
	}
	return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "it could be " + found[0].String() + " or " + found[1].String(), Next: "write " + found[0].String()}
}

func alternatives(of []progress.Kind) string {
	names := make([]string, len(of))
	for i, kind := range of {
		names[i] = string(kind)
	}
	return strings.Join(names, " or ")
}
