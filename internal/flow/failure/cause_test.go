package failure_test

import (
	"fmt"
	"slices"
	"testing"

	"lockkeeper/internal/flow/failure"
)

// Failures of the same test are one cause, also if other tests fail too. Messages are compared
// without names, paths, numbers and ids.
func TestCauses(t *testing.T) {
	failing := func(tests ...string) *failure.Failure {
		return &failure.Failure{Command: "rails test", Exit: 1, Tests: tests}
	}
	var cases []failure.Case
	for i := range 3 {
		name := fmt.Sprintf("shop/orders%d/b%d", i, i)
		cases = append(cases,
			failure.Case{Names: []string{name}, Reason: "1 failure", Failure: failing("A#one", fmt.Sprint("B#own", i))},
			failure.Case{Names: []string{name}, Reason: fmt.Sprintf("the agent of %s wrote app/models/m%d.rb %d times", name, i, i)},
			failure.Case{Names: []string{name}, Failure: &failure.Failure{Command: "make", Exit: 2, Text: fmt.Sprintf("cannot open /home/u%d/%s.log", i, name)}})
	}
	cases = append(cases, failure.Case{Reason: "2 failures", Failure: failing("C#two")}, failure.Case{Reason: "the prompt is too long"})
	causes := failure.Causes(cases)
	var got []string
	ids := map[string]bool{}
	for _, c := range causes {
		got = append(got, fmt.Sprintf("%s %d", c.Title, len(c.Cases)))
		ids[c.ID] = true
	}
	want := []string{"A#one 3", "the agent of … wrote … … times 3", " 3", "C#two 1", "the prompt is too long 1"}
	if !slices.Equal(got, want) || len(ids) != len(causes) {
		t.Errorf("the causes are %q, not %q", got, want)
	}
	for i, c := range failure.Causes(slices.Clone(cases)) {
		if c.ID != causes[i].ID {
			t.Errorf("cause %d has another id", i)
		}
	}
}

// An excerpt begins where the output is about the test.
func TestExcerpt(t *testing.T) {
	output := "Run options: --seed 7\n\n.F\n\nFailure:\nA#one [t.rb:4]:\nExpected 1\n\nbin/rails test t.rb:4\n"
	if got := failure.Excerpt(output, "A#one"); len(got) != 3 || got[0] != "A#one [t.rb:4]:" || got[1] != "Expected 1" {
		t.Errorf("the excerpt is %q", got)
	}
	if got := failure.Excerpt("a\nb\n\x1b[31merror: c\x1b[0m\nd\n", ""); len(got) != 2 || got[0] != "error: c" {
		t.Errorf("the excerpt is %q", got)
	}
	if got := failure.Excerpt("a\nb\n", ""); len(got) != 2 {
		t.Errorf("the excerpt is %q", got)
	}
}
