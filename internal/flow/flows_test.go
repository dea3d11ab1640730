package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The phases of the flow equal the specified table. Its columns are number, phase, unit,
// concurrency, write locks, people, and document.
//
// shows: PL-6 PL-7 PL-8 PL-9 PL-15 PL-26
func TestControllersAreTheTable(t *testing.T) {
	const table = `
		0  discover   codebase   single         no   no  -
		1  analyze    controller parallel       no   no  analysis.json
		2  research   controller mixed          no   yes research
		3  extract    controller parallel       no   no  extract.json
		4  synthesize controller parallel       no   no  synthesize.json
		5  audit      controller parallel       no   no  audit.json
		6  decide     controller -              no   yes decisions.json
		7  batch_plan controller per-controller no   yes batches.json
		8  apply      batch      parallel       yes  no  apply.json
		9  test       batch      sequential     held no  test_results.json
		10 ci         batch      sequential     held no  ci_results.json
		11 verify     batch      sequential     held no  verification.json`
	var want, got []string
	for line := range strings.Lines(strings.TrimSpace(table)) {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	held := false // the previous phase holds the write locks
	for i, p := range Controllers().Phases {
		how := "parallel"
		switch {
		case p.Unit == Whole:
			how = "single"
		case p.Executor == API:
			how = "mixed"
		case p.Executor == Human:
			how = "-"
		case p.Review:
			how = "per-controller"
		case held:
			how = "sequential"
		}
		locks, human, output := "no", "no", p.Output
		if p.Writes {
			locks = "yes"
		}
		if p.Writes && held {
			locks = "held"
		}
		if p.Review || p.Executor == Human || p.Executor == API {
			human = "yes"
		}
		if output == "" {
			output = "-"
		}
		got = append(got, strings.Join([]string{fmt.Sprint(i), p.Name, string(p.Unit), how, locks, human, output}, " "))
		held = p.Writes
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// shows: PL-10 PL-32 PL-75 PL-76 CF-28 SW-63
func TestStatuses(t *testing.T) {
	const lifecycle = " applying testing fixing_tests ci_checking fixing_ci verifying complete no_change error"
	for flow, want := range map[string]string{
		"controllers": "idle discovering ready queued analyzing researching extracting synthesizing auditing awaiting_decisions planning_batches" + lifecycle,
		"screens":     "idle discovering ready queued analyzing awaiting_decisions" + lifecycle,
		"tasks":       "idle planning_batches ready queued" + lifecycle,
	} {
		f, err := ByName(flow)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.statuses(), " "); got != want {
			t.Errorf("%s: got %s, want %s", flow, got, want)
		}
	}
}

// shows: CF-19 CF-20 CF-23
func TestFlows(t *testing.T) {
	f, err := ByName("screens")
	if err != nil {
		t.Fatal(err)
	}
	merge, ok := f.Phase("merge")
	if !ok || merge.Unit != BatchUnit || !merge.Writes {
		t.Errorf("merge: %+v", merge)
	}
	if p, _ := f.Phase("analyze"); p.Unit != Screen || p.Writes {
		t.Errorf("analyze: %+v", p)
	}
	if _, ok := f.Phase("research"); ok {
		t.Error("screens are researched")
	}
	gated := f.Reviewed("batch_plan")
	was, _ := f.Phase("batch_plan")
	is, _ := gated.Phase("batch_plan")
	if was.Review || !is.Review {
		t.Errorf("gate: %v before, %v after", was.Review, is.Review)
	}
	if _, err := ByName("screen"); err == nil || !strings.Contains(err.Error(), "controllers, screens, tasks") {
		t.Errorf("%v", err)
	}
}

// Every phase with an agent has a prompt and a schema for the answer.
//
// shows: PL-8
func TestPhasesNameWhatExists(t *testing.T) {
	prompts, err := NewPrompts(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []Flow{Controllers(), Screens(), Tasks()} {
		for _, p := range f.Phases {
			asks := p.Executor == Agent || p.Executor == Command
			if (p.Prompt != "") != asks || (p.Answer != "") != asks {
				t.Errorf("%s %s: executor %s, prompt %q, answer %q", f.Name, p.Name, p.Executor, p.Prompt, p.Answer)
			}
			if asks && !slices.Contains(prompts.Names(), p.Prompt) {
				t.Errorf("%s %s: no prompt %s", f.Name, p.Name, p.Prompt)
			}
			_, known := documents()[p.Output]
			known = known || p.Step == Asking && p.Answer != "" // the schema of its answer
			if p.Output != "" && p.Output != ResearchFolder && !known {
				t.Errorf("%s %s: no schema of %s", f.Name, p.Name, p.Output)
			}
			if p.Answer != "" {
				AnswerSchema(p.Answer)
			}
		}
	}
	if got := strings.Join(prompts.Names(), " "); got != "analyze apply batch_plan extract fix_ci fix_review fix_tests merge question screen synthesize task verify" {
		t.Error(got)
	}
}

// statuses lists every status that a unit or a batch of the flow can have, in order.
func (f Flow) statuses() []string {
	list := []string{Idle}
	for _, p := range f.Phases {
		list = append(list, p.Status)
		if p.Fixing != "" {
			list = append(list, p.Fixing)
		}
		if p.Unit == Whole {
			list = append(list, Discovered, Queued)
		}
	}
	return append(list, Complete, NoChange, Failed)
}
