package sample

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lockkeeper/internal/flow"
)

// An object is a part of a script or of a plan. JSON is YAML.
type object map[string]any

// Script returns the script of agents in the flow "controllers": every call takes as long as
// Pause, all tests pass, and agents write only declared files.
func (l Large) Script() ([]byte, error) {
	var items []flow.Possible
	ready := flow.Synthesis{Dropped: []flow.Dropped{}}
	for n := range maxBatches {
		what := fmt.Sprintf("Improve part %d", n+1)
		items = append(items, flow.Possible{Description: what})
		ready.Items = append(ready.Items, flow.Ready{ID: fmt.Sprintf("i%d", n+1), Description: what, Impact: flow.High, Effort: flow.Low, Rationale: "It is there to be improved."})
	}
	calls := []object{
		l.call(`^# analyze `, flow.Analysis{Purpose: "Shows a list.", Behaviour: "The list is open to everybody.", Screens: []flow.Served{{Name: "List", Action: "index"}},
			Relations: []flow.Relation{}, Files: concerns(), Topics: []flow.Topic{}}),
		l.call(`^# extract `, flow.Extract{Items: items}),
		l.call(`^# synthesize `, ready),
		l.call(`^# verify `, flow.Verdict{Verdict: "pass", Report: "The line is marked as done.", Issues: []string{}}),
		l.call(`^# fix_(?:tests|ci) `, object{"summary": "Nothing was changed."}),
	}
	all, units := l.draw()
	names := make([][]string, len(all)) // names of the controllers of each shape
	for _, u := range units {
		names[u.shape] = append(names[u.shape], u.name)
	}
	for number, s := range all {
		if names[number] == nil {
			continue
		}
		who := `(\w+)/(` + strings.Join(names[number], "|") + `)`
		u := newUnit("${1}", "${2}", number, s)
		var batches []object
		for _, b := range u.batches {
			batches = append(batches, object{"id": b.ID, "title": b.Title, "items": b.Items, "write_targets": b.WriteTargets,
				"reads": append([]string{}, b.Reads...), "effort": b.Effort, "after": append([]string{}, b.After...)})
			var edits []object
			for _, path := range b.WriteTargets {
				edits = append(edits, object{"edit": object{"path": path, "find": u.planned(&b, path), "replace": u.done(&b, path)}})
			}
			calls = append(calls, l.call(`^# apply `+who+`/`+b.ID+`\s`, object{"summary": "Marked as done."}, edits...))
		}
		calls = append(calls, l.call(`^# batch_plan `+who+`\s`, object{"batches": batches}))
	}
	return lines("calls", calls)
}

func (l Large) call(match string, answer any, steps ...object) object {
	return object{"match": match, "steps": append([]object{{"sleep": l.Pause.String()}}, steps...),
		"result": object{"structured": answer, "cost_usd": 0.1, "tokens": object{"input": 1000, "output": 100}}}
}

// Plan returns the same work for lockkeeper simulate. Checks is the duration of a batch's tests
// and checks. The plan has no reads, because a run does not lock them.
func (l Large) Plan(checks time.Duration) ([]byte, error) {
	var items []object
	_, units := l.draw()
	for _, u := range units {
		var before []string
		for _, phase := range []string{"analyze", "extract", "synthesize", "batch_plan"} {
			name := u.id() + "/" + phase
			items = append(items, object{"name": name, "phase": phase, "project": u.module, "unit": "controller", "duration": millis(l.Pause), "after": before})
			before = []string{name}
		}
		for _, b := range u.batches {
			after := before
			for _, id := range b.After {
				after = append(after[:len(after):len(after)], u.id()+"/"+id)
			}
			items = append(items, object{"name": u.id() + "/" + b.ID, "phase": "apply", "project": u.module, "unit": "batch",
				"duration": millis(2*l.Pause + checks), "writes": b.WriteTargets, "after": after})
		}
	}
	return lines("items", items)
}

func millis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// lines returns a list under a key, with one entry per line.
func lines(key string, list []object) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s:\n", key)
	for _, entry := range list {
		text, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "- %s\n", text)
	}
	return b.Bytes(), nil
}
