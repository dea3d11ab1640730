package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/surface/acts"
)

// linesSaid limits how many results are listed one by one.
const linesSaid = 4

// verdict describes the result of an act on a flow.
func verdict(decider *acts.Decider, v acts.Verdict, err error) (said, error) {
	s := said{Changed: len(v.Done) > 0, Flow: decider.Flow.Name}
	s.Lines = append(s.Lines, doneInWords(v.Done)...)
	for _, refused := range v.Refused {
		s = s.with(refused)
	}
	if err != nil {
		return s, err
	}
	s.Lines = append(s.Lines, v.Warnings...)
	for _, u := range v.Units {
		switch {
		case len(v.Units) > linesSaid:
		case u.Waits > 0:
			s.Lines = append(s.Lines, fmt.Sprintf("%s waits for %s.", u.Unit, counted(u.Waits, "more answer")))
		case u.Next != "":
			s.Lines = append(s.Lines, fmt.Sprintf("%s continues with %s.", u.Unit, plain(u.Next)))
		}
	}
	switch {
	case s.Changed && v.Conductor == "":
		s.Lines = append(s.Lines, "No run is active for this flow: it continues when you start one.")
	case s.Changed && v.Waiting == 0:
		s.Lines = append(s.Lines, "Nothing else waits for you.")
	}
	return s, nil
}

// doneInWords lists the results one by one if they are few, otherwise grouped by outcome.
func doneInWords(done []acts.Done) (lines []string) {
	if len(done) <= linesSaid {
		for _, one := range done {
			lines = append(lines, one.Ref.String()+" "+one.What)
		}
		return lines
	}
	var states []string
	count := map[string]int{}
	for _, one := range done {
		if count[one.State]++; count[one.State] == 1 {
			states = append(states, one.State)
		}
	}
	for _, state := range states {
		lines = append(lines, fmt.Sprintf("%d times: %s", count[state], state))
	}
	return lines
}

func answer(d *Dashboard, ctx context.Context, f form) (said, error) {
	refs, seen, err := f.refs()
	if err != nil {
		return said{}, err
	}
	decider, err := d.decider(ctx, f)
	if err != nil {
		return said{}, err
	}
	saying := acts.AnswerInput{Was: f.Get("was"), Only: f.Get("same") == "", Text: f.Values.Get("text"), Seen: seen}
	if note := f.Get("note"); note != "" {
		saying.Notes = []string{note}
	}
	give := decider.Give
	if f.Get("many") != "" {
		give = decider.GiveMany
	}
	v, err := give(ctx, f.Get("word"), refs, saying)
	s, err := verdict(decider, v, err)
	for _, one := range v.Done {
		s.Back = append(s.Back, one.Ref.String())
	}
	return s, err
}

func withdraw(d *Dashboard, ctx context.Context, f form) (said, error) {
	refs, _, err := f.refs()
	if err != nil {
		return said{}, err
	}
	decider, err := d.decider(ctx, f)
	if err != nil {
		return said{}, err
	}
	v, err := decider.Withdraw(ctx, refs)
	return verdict(decider, v, err)
}

// onUnit performs an act on a unit, on the versions that the person saw.
func onUnit(kind acts.UnitActKind) func(*Dashboard, context.Context, form) (said, error) {
	return func(d *Dashboard, ctx context.Context, f form) (said, error) {
		act := kind.New()
		if err := f.fill(act); err != nil {
			return said{}, err
		}
		decider, err := d.decider(ctx, f)
		if err != nil {
			return said{}, err
		}
		v, err := act.Do(ctx, decider, f.Get("unit"))
		return verdict(decider, v, err)
	}
}

// fill sets the fields of an act from the form's fields of the same names. Each line of a form
// field is one entry of a list.
func (f form) fill(act acts.UnitAct) (err error) {
	into := reflect.ValueOf(act).Elem()
	for i := range into.NumField() {
		name, options, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		text := strings.TrimSpace(strings.Join(f.Values[name], "\n"))
		if options == "" {
			err = errors.Join(err, f.needs(name))
		}
		switch field := into.Field(i); {
		case name == "seen" && f.Has("ref"):
			_, seen, wrong := f.refs()
			field.Set(reflect.ValueOf(seen))
			err = errors.Join(err, wrong)
		case field.Kind() == reflect.String:
			field.SetString(text)
		case field.Kind() == reflect.Bool:
			field.SetBool(text != "")
		case field.Kind() == reflect.Int:
			n, wrong := strconv.Atoi(cmp.Or(text, "0"))
			if wrong != nil {
				err = errors.Join(err, &lockkeeper.InputError{Field: name, Value: text, Reason: "not a number", Next: "give a number"})
			}
			field.SetInt(int64(n))
		case field.Kind() == reflect.Slice:
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); line != "" {
					field.Set(reflect.Append(field, reflect.ValueOf(line)))
				}
			}
		}
	}
	return err
}
