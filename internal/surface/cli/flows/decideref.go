package flows

import (
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/cli/term"
)

// refs parses references of some kinds, each one word, or two with its kind.
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

// ref parses the reference at the start of words, and returns the rest. Without its kind the
// name must be unambiguous.
func (d *decider) ref(ctx context.Context, words []string, of ...progress.Kind) (ref progress.Ref, rest []string, err error) {
	text, rest := words[0], words[1:]
	if slices.Contains(progress.Kinds(), progress.Kind(text)) && len(rest) > 0 {
		text, rest = text+" "+rest[0], rest[1:]
	}
	if kind, name, isWhole := strings.Cut(text, " "); isWhole {
		if ref, err = d.parse(kind, name); err != nil {
			return ref, nil, err
		}
		if !slices.Contains(of, ref.Kind) {
			return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "needs a reference of the kind " + alternatives(of), Next: d.flow.Command("decide", "show", ref.String())}
		}
		_, err = d.flow.Unit(ctx, ref.Unit)
		return ref, rest, err
	}
	var found []progress.Ref
	for _, kind := range of {
		ref, err := d.parse(string(kind), text)
		if err != nil {
			continue
		}
		there, err := d.flow.Has(ctx, ref)
		if err != nil {
			return ref, nil, err
		}
		if there {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 0:
		return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "no such " + alternatives(of) + " in the flow " + d.flow.Flow.Name, Next: d.flow.Command("decide")}
	case 1:
		return found[0], rest, nil
	}
	return ref, nil, &lockkeeper.InputError{Field: "reference", Value: text, Reason: "ambiguous: " + found[0].String() + " or " + found[1].String(), Next: "write " + found[0].String()}
}

// parse parses a reference. The name may omit the unit of a flow with a single unit.
func (d *decider) parse(kind, name string) (progress.Ref, error) {
	ref, err := progress.ParseRef(kind + " " + name)
	if one := d.flow.Flow.OneUnit; one != "" && ref.Unit != one {
		if in, short := progress.ParseRef(kind + " " + one + "/" + name); short == nil && in.Unit == one {
			return in, nil
		}
	}
	return ref, err
}

func alternatives(of []progress.Kind) string {
	return strings.ReplaceAll(term.Join(of, func(kind progress.Kind) string { return string(kind) }), ", ", " or ")
}
