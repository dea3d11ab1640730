package progress

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/failure"
)

// A CommonFailure is the same failure in several batches. It may have one cause, so the run starts no
// new work and pays for no fix until a person answers.
type CommonFailure struct {
	ID      string     `json:"id"`
	Run     string     `json:"run"`     // the run that asked
	Parts   []string   `json:"parts"`   // the failed tests, or the end of the output
	Phase   string     `json:"phase"`   // the check phase of the batch that failed last
	Command string     `json:"command"` // its command
	Last    string     `json:"last"`    // the last lines of its output
	Output  string     `json:"output"`  // the file with its output, relative to the root
	Batches []string   `json:"batches"` // unit/batch
	At      time.Time  `json:"at"`
	Answer  string     `json:"answer,omitempty"` // empty: it is open
	By      string     `json:"by,omitempty"`
	Given   *time.Time `json:"answered_at,omitempty"`
}

// Title says in one line what failed.
func (f CommonFailure) Title() string {
	if len(f.Parts) == 1 && strings.Contains(f.Parts[0], "\n") && f.Last != "" { // the end of an output, without its numbers
		return failure.Title([]string{f.Last})
	}
	return failure.Title(f.Parts)
}

// The answers to a CommonFailure.
const (
	Again   = "again"   // the batches are tested again, and what fails is fixed as usual
	Without = "without" // the batches with the failure fail without a fix, and the run continues
	Stop    = "stop"    // the run stops
)

type commonFailures struct {
	Failures []CommonFailure `json:"failures"`
}

// CommonFailures lists the failures that a run asked about in this unit, in their order.
func (u *Unit) CommonFailures() []CommonFailure {
	if u.docs.failures.value == nil {
		return nil
	}
	return u.docs.failures.value.Failures
}

func (u *Unit) CommonFailure(id string) (CommonFailure, bool) {
	for _, f := range u.CommonFailures() {
		if f.ID == id {
			return f, true
		}
	}
	return CommonFailure{}, false
}

// AskFailure stores the question about a failure of several batches, and returns its id.
func (b *Tracker) AskFailure(ctx context.Context, unit string, f CommonFailure, by string) (id string, err error) {
	err = b.act(ctx, unit, func(u *Unit) error {
		f.At, f.ID = b.time(), failure.ID(f.Parts)
		for n := 2; ; n++ {
			known, taken := u.CommonFailure(f.ID)
			if taken && known.Answer == "" {
				id = known.ID
				return nil // a run before a crash stored the question
			}
			if !taken {
				break
			}
			f.ID = fmt.Sprintf("%s-%d", failure.ID(f.Parts), n)
		}
		id = f.ID
		return b.write(ctx, u.docs.failures.stored, commonFailures{append(slices.Clone(u.CommonFailures()), f)}, by)
	})
	return id, err
}

// AnswerFailure stores a person's answer to a common failure. The answer Without can be changed
// later.
func (b *Tracker) AnswerFailure(ctx context.Context, unit, id, answer, by string) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		list := slices.Clone(u.CommonFailures())
		i := slices.IndexFunc(list, func(f CommonFailure) bool { return f.ID == id })
		switch {
		case i < 0:
			return &lockkeeper.InputError{Field: "failure", Value: unit + "/" + id, Reason: "no failure has this id", Next: "lockkeeper decide"}
		case list[i].Answer != "" && (list[i].Answer != Without || answer == Without):
			return refused("answer failure "+unit+"/"+id, "lockkeeper decide", "it has the answer %s, by %s", list[i].Answer, list[i].By)
		}
		list[i].Answer, list[i].By, list[i].Given = answer, by, new(b.time())
		return b.write(ctx, u.docs.failures.stored, commonFailures{list}, by)
	})
}

func (u *Unit) failureDecisions() (list []Decision) {
	for _, f := range u.CommonFailures() {
		if f.Answer != "" {
			continue
		}
		list = append(list, Decision{Ref: Ref{Kind: FailureKind, Unit: u.Name, Failure: f.ID}, Title: line(counted(len(f.Batches), "batch fails", "batches fail") + " in the same way: " + f.Title()),
			Since: f.At, Frees: len(f.Batches), Left: 1,
			Facts: []Fact{{"failure", strings.Join(f.Parts, "\n")}, {"batches", strings.Join(f.Batches, ", ")}, {"phase", f.Phase}, {"command", f.Command}, {"output", f.Last}, {"all of it", f.Output}}}.withVersion())
	}
	return list
}
