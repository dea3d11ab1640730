package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockkeeper"

	"pgregory.net/rapid"
)

func todos(efforts ...Level) (list []Decided) {
	for i, effort := range efforts {
		list = append(list, Decided{Ready: Ready{ID: fmt.Sprintf("i%d", i+1), Description: fmt.Sprintf("Do %d", i+1), Effort: effort}, Decision: Todo})
	}
	return list
}

// outline formats a plan on one line: b1[i1 i2: a.rb b.rb] b2[i3: c.rb < b1].
func outline(p Plan) string {
	var parts []string
	for _, b := range p.Batches {
		s := fmt.Sprintf("%s[%s: %s", b.ID, strings.Join(b.Items, " "), strings.Join(b.WriteTargets, " "))
		if len(b.After) > 0 {
			s += " < " + strings.Join(b.After, " ")
		}
		parts = append(parts, s+"]")
	}
	return strings.Join(parts, " ")
}

func threeBatches() Plan {
	return Plan{Batches: []Batch{
		{ID: "b1", Title: "one", Items: []string{"i1", "i2"}, WriteTargets: []string{"a.rb", "b.rb"}, Effort: Low},
		{ID: "b2", Title: "two", Items: []string{"i3"}, WriteTargets: []string{"c.rb"}, Effort: High, After: []string{"b1"}},
		{ID: "b3", Title: "three", Items: []string{"i4"}, WriteTargets: []string{"d.rb"}, Effort: Medium, After: []string{"b2"}},
	}, Approved: &Approval{By: "ann"}}
}

// shows: PL-20 PL-23
func TestNumber(t *testing.T) {
	answer := Plan{Batches: []Batch{
		{ID: "views", Items: []string{"i1"}, WriteTargets: []string{"./v.erb"}, After: []string{"model"}},
		{ID: "docs", Items: []string{"i2"}, WriteTargets: []string{"d.md"}},
		{ID: "model", Items: []string{"i3"}, WriteTargets: []string{"m.rb"}},
	}}
	p, err := Number(answer)
	if want := "b1[i2: d.md] b2[i3: m.rb] b3[i1: v.erb < b2]"; err != nil || outline(p) != want {
		t.Errorf("got %s, %v", outline(p), err)
	}
	if answer.Batches[0].After[0] != "model" {
		t.Error("the answer was changed")
	}
	answer.Batches[2].After = []string{"views"}
	if _, err := Number(answer); err == nil || !strings.Contains(err.Error(), "each of these comes after the next: views, model, views") {
		t.Error(err)
	}
	answer.Batches[2].After = []string{"b9"}
	if _, err := Number(answer); err == nil || !strings.Contains(err.Error(), `"model": comes after the unknown batch "b9"`) {
		t.Error(err)
	}
	answer.Batches[2] = answer.Batches[1]
	if _, err := Number(answer); err == nil || !strings.Contains(err.Error(), `"docs" is already the id of batches/1`) {
		t.Error(err)
	}
}

// shows: PL-21 PL-22 PL-23 PL-24 PL-36
func TestCheckPlan(t *testing.T) {
	todo := todos(Low, Low, High, Medium)
	warnings, err := CheckPlan(threeBatches(), append(todo, Decided{Ready: Ready{ID: "i9"}, Decision: Defer}))
	if err != nil || len(warnings) != 0 {
		t.Errorf("%v, %v", warnings, err)
	}
	for name, tc := range map[string]struct {
		change func(*Plan)
		want   string
	}{
		"left out":    {func(p *Plan) { p.Batches = p.Batches[:2] }, `"i4": decided as TODO, but in no batch`},
		"unknown":     {func(p *Plan) { p.Batches[0].Items = append(p.Batches[0].Items, "i9") }, `"i9": in batch b1, but its decision is not TODO`},
		"twice":       {func(p *Plan) { p.Batches[1].Items = append(p.Batches[1].Items, "i1") }, `plan: batches/1/items/1: item "i1" of batch b2 is already in batch b1`},
		"empty":       {func(p *Plan) { p.Batches = append(p.Batches, Batch{ID: "b4", WriteTargets: []string{"x"}}) }, `"b4": a batch without items`},
		"no targets":  {func(p *Plan) { p.Batches[0].WriteTargets = nil }, `"b1": a batch without write targets`},
		"later first": {func(p *Plan) { slices.Reverse(p.Batches) }, `batch b3 comes after "b2", which is not an earlier batch`},
		"directory":   {func(p *Plan) { p.Batches[0].WriteTargets[0] = "app/" }, "batches/0/write_targets/0: over-lock"},
	} {
		p := threeBatches()
		tc.change(&p)
		if _, err := CheckPlan(p, todo); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	p := threeBatches()
	p.Batches[0].Items = []string{"i1", "i2", "i3"}
	p.Batches[1].Items = []string{"i4"}
	p.Batches[1].WriteTargets = []string{"./a.rb"}
	p.Batches = p.Batches[:2]
	warnings, err = CheckPlan(p, todo)
	want := []string{"item i3 is of high effort and shares batch b1 with 2 others", "a.rb is changed by b1, b2, which will wait for each other"}
	if err != nil || !slices.Equal(warnings, want) {
		t.Errorf("%q, %v", warnings, err)
	}
}

// shows: PL-25 GP-19
func TestEdits(t *testing.T) {
	todo := todos(Low, Low, High, Medium)
	type result struct {
		Plan
		warnings []string
		err      error
	}
	edit := func(p Plan, w []string, err error) result { return result{p, w, err} }
	p := threeBatches()
	for name, tc := range map[string]struct {
		result
		want string
	}{
		"move":         {edit(p.Move(todo, "i1", "b3")), "b1[i2: a.rb b.rb] b2[i3: c.rb < b1] b3[i4 i1: a.rb b.rb d.rb < b2]"},
		"move last":    {edit(p.Move(todo, "i3", "b1")), "b1[i1 i2 i3: a.rb b.rb c.rb] b3[i4: d.rb < b1]"},
		"split":        {edit(p.Split(todo, "b1", "i2")), "b1[i1: a.rb b.rb] b4[i2: a.rb b.rb] b2[i3: c.rb < b1 b4] b3[i4: d.rb < b2]"},
		"merge":        {edit(p.Merge(todo, "b2", "b3")), "b1[i1 i2: a.rb b.rb] b2[i3 i4: c.rb d.rb < b1]"},
		"merge back":   {edit(p.Merge(todo, "b2", "b1")), "b2[i3 i1 i2: a.rb b.rb c.rb] b3[i4: d.rb < b2]"},
		"merge round":  {edit(p.Merge(todo, "b1", "b3")), "each of these comes after the next: b1, b2, b1"},
		"no item":      {edit(p.Move(todo, "i9", "b1")), `"i9": in no batch of the plan`},
		"no batch":     {edit(p.Move(todo, "i1", "b9")), `"b9": no batch of the plan; next: name one of b1, b2, b3`},
		"same batch":   {edit(p.Move(todo, "i1", "b1")), `"i1": in batch b1 already`},
		"all of it":    {edit(p.Split(todo, "b1", "i1", "i2")), "splitting 2 of its 2 items off would leave one side empty"},
		"nothing":      {edit(p.Split(todo, "b1")), "would leave one side empty"},
		"not its item": {edit(p.Split(todo, "b1", "i3")), `"i3": not in batch b1; next: use one of i1, i2`},
		"itself":       {edit(p.Merge(todo, "b1", "b1")), "cannot be merged with itself"},
	} {
		got := outline(tc.Plan)
		if tc.err != nil {
			got = tc.err.Error()
		}
		if !strings.Contains(got, tc.want) || tc.Approved != nil {
			t.Errorf("%s: got %s, approved %v; want %s", name, got, tc.Approved, tc.want)
		}
	}
	_, warnings, _ := p.Move(todo, "i1", "b3")
	if want := "batch b2 comes after b1; if b2 needs item i1, b2 must come after b3"; len(warnings) != 3 || warnings[0] != want {
		t.Errorf("%q", warnings)
	}
	if merged, _, _ := p.Merge(todo, "b1", "b2"); merged.Batches[0].Effort != High {
		t.Errorf("effort %s", merged.Batches[0].Effort)
	}
	if outline(p) != outline(threeBatches()) || p.Approved == nil {
		t.Error("the plan itself was changed")
	}
	var over *lockkeeper.OverLockError
	p.Batches[0].WriteTargets = []string{"x/"}
	if _, err := CheckPlan(p, todo); !errors.As(err, &over) || over.Path != "x/" {
		t.Error(err)
	}
}

// Every edit by people results in a valid plan. It has each item once, is in order and is not
// approved, and no write target is lost.
//
// shows: PL-25 PL-23 GP-19
func TestEditsKeepAPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, todo := threeBatches(), todos(Low, Low, High, Medium)
		item := rapid.SampledFrom([]string{"i1", "i2", "i3", "i4"})
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			batch := rapid.Custom(func(t *rapid.T) string { return rapid.SampledFrom(p.Batches).Draw(t, "batch").ID })
			var next Plan
			var err error
			switch rapid.IntRange(0, 2).Draw(t, "edit") {
			case 0:
				next, _, err = p.Move(todo, item.Draw(t, "item"), batch.Draw(t, "to"))
			case 1:
				next, _, err = p.Split(todo, batch.Draw(t, "split"), item.Draw(t, "item"))
			case 2:
				next, _, err = p.Merge(todo, batch.Draw(t, "into"), batch.Draw(t, "from"))
			}
			if err != nil {
				if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
					t.Fatal(err)
				}
				continue
			}
			if _, err := CheckPlan(next, todo); err != nil || next.Approved != nil {
				t.Fatalf("%s: %v", outline(next), err)
			}
			text, err := json.Marshal(next)
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(BatchesFile, text); err != nil {
				t.Fatal(err)
			}
			all := func(p Plan) (lists []string) {
				for _, b := range p.Batches {
					lists = Targets(lists, b.WriteTargets)
				}
				return lists
			}
			if !slices.Equal(all(p), all(next)) {
				t.Fatalf("%s became %s", outline(p), outline(next))
			}
			p = next
		}
	})
}

// shows: PL-64
func TestDigest(t *testing.T) {
	b := threeBatches().Batches[0]
	if got := Digest(b); len(got) != 64 || got != Digest(copied(b)) {
		t.Error(got)
	}
	if Digest(Batch{ID: "a"}) != Digest(Batch{ID: "a", Items: []string{}, WriteTargets: []string{}}) {
		t.Error("none is not none")
	}
	seen := map[string]bool{Digest(b): true}
	for _, change := range []func(*Batch){
		func(b *Batch) { b.ID = "x" }, func(b *Batch) { b.Title = "x" }, func(b *Batch) { b.Items = nil }, func(b *Batch) { b.WriteTargets = []string{"x"} },
		func(b *Batch) { b.Reads = []string{"x"} }, func(b *Batch) { b.Effort = High }, func(b *Batch) { b.After = []string{"x"} },
		func(b *Batch) { b.Prompt = "x" }, func(b *Batch) { b.Tests = []string{"x"} }, func(b *Batch) { b.Agent = "x" },
	} {
		other := copied(b)
		change(&other)
		if seen[Digest(other)] {
			t.Errorf("%+v has the digest of another", other)
		}
		seen[Digest(other)] = true
	}
}
