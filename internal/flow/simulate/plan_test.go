package simulate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/simulate"
)

func TestReadPlan(t *testing.T) {
	p, err := read(t, `
# everything an item may say
items:
  - name: posts/index
    phase: analyze
    project: blog
    unit: screen
    duration: 2m
    reads: [app/models/post.rb, app/views/]
    writes:
      - docs/posts/index.md
  - name: posts
    duration: 90   # seconds
    reads:
    after: [posts/index]
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Items) != 2 {
		t.Fatalf("%v", p)
	}
	got := p.Items[0]
	for _, c := range []struct{ got, want any }{
		{got.Name, "posts/index"}, {got.Phase, "analyze"}, {got.Project, "blog"}, {got.Unit, "screen"}, {got.Duration, 2 * time.Minute},
		{got.Reads, []string{"app/models/post.rb", "app/views/"}}, {got.Writes, []string{"docs/posts/index.md"}},
		{p.Items[1].Duration, 90 * time.Second}, {p.Items[1].After, []string{"posts/index"}}, {len(p.Items[1].Reads), 0},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if rep := run(t, p, 1); time.Duration(rep.Prediction.Finish) != 210*time.Second {
		t.Errorf("%v", rep.Prediction)
	}
}

// Every problem of a plan is reported with its position, the reason and the next step.
func TestBadPlans(t *testing.T) {
	item := func(lines ...string) string {
		return "items:\n  - name: a\n    duration: 1m\n    " + strings.Join(lines, "\n    ") + "\n"
	}
	for _, c := range []struct{ text, field, value, reason, next string }{
		{"", "items", "", "missing", "under items"},
		{"items:\n", "items", "", "missing", "under items"},
		{"items: [", "plan", "plan.yaml:1:8", "sequence end", "simulate --help"},
		{"\xff", "plan", "plan.yaml", "not UTF-8", "UTF-8"},
		{strings.Repeat("[", 5_000), "plan", "plan.yaml:1:", "nested too deep", "simulate --help"},
		{"items:\n  " + strings.Repeat("- ", 5_000), "plan", "plan.yaml:2:", "nested too deep", "simulate --help"},
		{"- a\n", "plan.yaml:1:1: the plan", "-", "keys and values", "items"},
		{"items: 5\n", "plan.yaml:1:8: items", "5", "must be a list", "one value per line"},
		{"items:\n  - x\n", "plan.yaml:2:5: an item", "x", "keys and values", "name, phase"},
		{"itemz:\n", "plan.yaml:1:1: key", "itemz", "unknown key of the plan", "did you mean items?"},
		{"1: 2\n", "plan.yaml:1:1: key", "1", "unknown key of the plan", "items"},
		{item() + "---\nitems:\n", "plan.yaml:6:", "", "second document", "remove the line ---"},
		{item("name: b"), "plan", "plan.yaml:4:", "already defined", "simulate --help"},
		{item("durations: 5m"), "plan.yaml:4:5: key", "durations", "unknown key of an item", "did you mean duration?"},
		{item("colour: red"), "plan.yaml:4:5: key", "colour", "unknown key of an item", "use one of name, phase, project"},
		{item("project: 5"), "plan.yaml:4:14: project", "5", "must be text", "quotes"},
		{item("project: ''"), "plan.yaml:4:14: project", "", "empty", "leave the key out"},
		{item("reads: app/x"), "plan.yaml:4:12: reads", "app/x", "must be a list", "[a, b]"},
		{item("reads: [5]"), "plan.yaml:4:13: reads", "5", "must be text", "quotes"},
		{item("reads: ['']"), "plan.yaml:4:13: reads", "", "empty", "fill it in"},
		{item("phase: aply"), "plan.yaml:2:5: phase", "aply", "unknown phase", "did you mean apply?"},
		{item("phase: holiday"), "plan.yaml:2:5: phase", "holiday", "unknown phase", "use one of verify, question, test"},
		{item("unit: page"), "plan.yaml:2:5: unit", "page", "unknown unit", "screen, controller or batch"},
		{item("reads: [/etc]"), "plan.yaml:2:5: reads", "/etc", "absolute path", "inside the space"},
		{item("reads: [../x]"), "plan.yaml:2:5: reads", "../x", "path with ..", "inside the space"},
		{item("reads: [a//b]"), "plan.yaml:2:5: reads", "a//b", "not normalized", "inside the space"},
		{item("reads: [/]"), "plan.yaml:2:5: reads", "/", "absolute path", "inside the space"},
		{item("after: [pots]") + "  - {name: posts, duration: 1m}\n", "plan.yaml:2:5: after", "pots", "no item has this name", "did you mean posts?"},
		{item("after: [elsewhere]"), "plan.yaml:2:5: after", "elsewhere", "no item has this name", "name an item of the plan"},
		{item("after: [a]"), "after", "a → a", "wait for each other", "remove one"},
		{item("after: [b]") + "  - {name: b, duration: 1m, after: [c]}\n  - {name: c, duration: 1m, after: [a]}\n", "after", "a → b → c → a", "wait for each other", "remove one"},
		{item() + "  - name: a\n    duration: 2m\n", "plan.yaml:5:5: name", "a", "used before, by plan.yaml:2:5", "a unique name"},
		{"items:\n  - duration: 1m\n", "plan.yaml:2:5: name", "", "missing", "a unique name"},
		{"items:\n  - name: a\n", "plan.yaml:2:5: duration", "", "missing", "such as 2m"},
		{"items:\n  - {name: a, duration: 0s}\n", "plan.yaml:2:25: duration", "0s", "zero", "such as 2m"},
		{"items:\n  - {name: a, duration: -2m}\n", ": duration", "-2m", "negative", "such as 2m"},
		{"items:\n  - {name: a, duration: -5}\n", ": duration", "-5", "negative", "such as 2m"},
		{"items:\n  - {name: a, duration: soon}\n", ": duration", "soon", "not a duration", "such as 2m"},
		{"items:\n  - {name: a, duration: }\n", ": duration", "", "not a duration", "such as 2m"},
		{"items:\n  - {name: a, duration: 8d}\n", ": duration", "192h", "longer than a week", "smaller pieces"},
		{"items:\n  - {name: \"a\\tb\", duration: 8m}\n", "plan.yaml:2:6: name", "a\tb", "cannot be printed", "plain text"},
	} {
		p, err := read(t, c.text)
		if err == nil {
			_, err = simulate.Run(t.Context(), p, simulate.Options{Slots: 1})
		}
		var wrong *lockkeeper.InputError
		if !errors.As(err, &wrong) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if !strings.Contains(wrong.Field, c.field) || !strings.Contains(wrong.Value, c.value) || !strings.Contains(wrong.Reason, c.reason) || !strings.Contains(wrong.Next, c.next) {
			t.Errorf("%.200q: %#v", c.text, wrong)
		}
	}
}

// All problems are reported at once.
func TestAllProblemsAreTold(t *testing.T) {
	_, err := read(t, "items:\n  - {nam: a, duration: -1m}\nother: 1\n")
	for _, want := range []string{"nam", "negative", "other"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %q", err, want)
		}
	}
}

// A write lock on a directory is refused, whether it is spelled as a directory or another item
// has a path below it.
//
// shows: PL-36 SW-19
func TestOverLock(t *testing.T) {
	for _, text := range []string{
		"items:\n  - {name: a, duration: 1m, writes: [app/views/]}\n",
		"items:\n  - {name: a, duration: 1m, writes: [app/views]}\n  - {name: b, duration: 1m, reads: [app/views/x.erb]}\n",
		"items:\n  - {name: a, duration: 1m, writes: [app/views]}\n  - {name: b, duration: 1m, reads: [app/views/]}\n",
		"items:\n  - {name: a, duration: 1m, writes: [.]}\n  - {name: b, duration: 1m, reads: [x]}\n",
	} {
		_, err := read(t, text)
		if lockkeeper.CodeOf(err) != lockkeeper.CodeOverLock || !strings.Contains(err.Error(), "plan.yaml:2:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBadFilesAndOptions(t *testing.T) {
	for _, path := range []string{"missing.yaml", t.TempDir()} {
		if _, err := simulate.ReadPlan(path, path, simulate.Times{}); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("%s: %v", path, err)
		}
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 64<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := simulate.ReadPlan(large, large, simulate.Times{}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
	for _, slots := range []int{0, -1} {
		if _, err := simulate.Run(t.Context(), plan(t, "a 1m"), simulate.Options{Slots: slots}); err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%d slots: %v", slots, err)
		}
	}
	many := &simulate.Plan{}
	for i := range 10_001 {
		many.Items = append(many.Items, simulate.Item{Name: fmt.Sprint(i), Duration: time.Minute})
	}
	if _, err := simulate.Run(t.Context(), many, simulate.Options{Slots: 1}); err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("%v", err)
	}
}

// A duration is a number of seconds, also with a fraction, or has a unit.
func TestFractionsOfSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"0.5": 500 * time.Millisecond, "2.25": 2250 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "90": 90 * time.Second, "300ms": 300 * time.Millisecond} {
		p, err := read(t, "items: [{name: a, duration: "+text+"}]")
		if err != nil || p.Items[0].Duration != want {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}
