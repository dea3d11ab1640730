package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/encoding/jsonplace"
)

// Check validates a document by its file name: against its schema, and against rules that a
// schema cannot express. A refused document counts as missing.
func Check(file string, body []byte) error {
	if err := fits(file, file, body); err != nil {
		return err
	}
	if file == manifestFile {
		_, err := ReadManifest(file, body)
		return err
	}
	rules, ok := documentRules[file]
	if !ok { // all other schemas are those of check phases
		rules = rulesFor(func(c Checked) *fault { return checkFiles(c.Files) })
	}
	return rules(file, body)
}

// documentRules are the rules that a schema cannot express, by file name.
var documentRules = map[string]func(file string, body []byte) error{
	AnalysisFile:     rulesFor(checkAnalysis),
	ExtractFile:      rulesFor(func(e Extract) *fault { return unique("items", e.Items, func(it Possible) string { return it.ID }) }),
	SynthesizeFile:   rulesFor(func(s Synthesis) *fault { return uniqueIn(s.Items, func(it Ready) string { return it.ID }, s.Dropped) }),
	AuditFile:        rulesFor(func(a Audit) *fault { return uniqueIn(a.Items, func(it Audited) string { return it.ID }, a.Dropped) }),
	DecisionsFile:    rulesFor(func(d Decisions) *fault { return unique("items", d.Items, func(it Decided) string { return it.ID }) }),
	BatchesFile:      rulesFor(checkBatches),
	ApplyFile:        rulesFor(func(a Applied) *fault { return checkFiles(a.Files) }),
	VerificationFile: rulesFor(func(v Verification) *fault { return checkFiles(v.Files) }),
	ReviewFile:       rulesFor(func(r Review) *fault { return checkFiles(r.Files) }),
	LandedFile:       rulesFor(func(l Landed) *fault { return checkFiles(l.Files) }),
	ScreenFile:       rulesFor(func(d ScreenDoc) *fault { return checkTargets(d.WriteTargets, "write_targets") }),
}

// rulesFor returns the rules for documents of one type.
func rulesFor[T any](rules func(T) *fault) func(file string, body []byte) error {
	return func(file string, body []byte) error { return checkAs(file, body, rules) }
}

// CheckOutput checks the document of a phase as Check does. The document of every check
// phase has the same form, whatever its name. The document of an agent's phase that has no
// schema of its own has the form of the agent's answer.
func (p Phase) CheckOutput(body []byte) error {
	switch {
	case p.Step == Checking:
		if err := fits(TestFile, p.Output, body); err != nil {
			return err
		}
		return checkAs(p.Output, body, func(c Checked) *fault { return checkFiles(c.Files) })
	case HasSchema(p.Output):
		return Check(p.Output, body)
	}
	return fitsSchema(answerForm(p.Answer), p.Output, body)
}

// checkAs reads a document that fits its schema and applies the rules for its type.
func checkAs[T any](file string, body []byte, rules func(T) *fault) error {
	var doc T
	if err := json.Unmarshal(body, &doc); err != nil { // the document has an invalid date, or a number out of range
		e := &DocumentError{File: file, Err: err}
		if at, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			e.Member = at.Field
			e.Line, e.Column = jsonplace.Position(body, at.Offset-1)
		}
		return e
	}
	if f := rules(doc); f != nil {
		return f.inText(file, body)
	}
	return nil
}

// unique finds an id that occurs twice in a list.
func unique[T any](member string, list []T, id func(T) string) *fault {
	seen := map[string]int{}
	for i, it := range list {
		if first, twice := seen[id(it)]; twice {
			return faultAt(lockkeeper.WithNext(fmt.Errorf("%q is already the id of %s/%d", id(it), member, first), "give each its own id"), member, i)
		}
		seen[id(it)] = i
	}
	return nil
}

// uniqueIn finds an id that occurs twice, or that is both kept and dropped.
func uniqueIn[T any](items []T, id func(T) string, dropped []Dropped) *fault {
	if f := unique("items", items, id); f != nil {
		return f
	}
	if f := unique("dropped", dropped, func(d Dropped) string { return d.ID }); f != nil {
		return f
	}
	for i, d := range dropped {
		if at := slices.IndexFunc(items, func(it T) bool { return id(it) == d.ID }); at >= 0 {
			return faultAt(lockkeeper.WithNext(fmt.Errorf("%q is dropped here and kept in items/%d", d.ID, at), "keep or drop it, not both"), "dropped", i)
		}
	}
	return nil
}

func checkAnalysis(a Analysis) *fault {
	for i, file := range a.Files {
		if _, err := readable(file); err != nil {
			return faultAt(err, "files", i)
		}
	}
	slugs := map[string]int{}
	for i, t := range a.Topics {
		if first, twice := slugs[t.Slug]; twice && t.Slug != "" {
			return faultAt(lockkeeper.WithNext(fmt.Errorf("%q is already the slug of research_topics/%d", t.Slug, first), "give each its own slug"), "research_topics", i, "slug")
		}
		slugs[t.Slug] = i
	}
	return nil
}

func checkFiles(files []File) *fault {
	for i, f := range files {
		if _, err := readable(f.Path); err != nil {
			return faultAt(err, "files", i, "path")
		}
	}
	return unique("files", files, func(f File) string { return f.Path })
}

func checkTargets(targets []string, place ...any) *fault {
	for i, target := range targets {
		if _, err := writable(target); err != nil {
			return faultAt(err, append(slices.Clone(place), i)...)
		}
	}
	return nil
}

func checkBatches(p Plan) *fault {
	if f := unique("batches", p.Batches, func(b Batch) string { return b.ID }); f != nil {
		return f
	}
	in := map[string]string{} // the batch of each item
	before := map[string]bool{}
	for i, b := range p.Batches {
		if f := checkTargets(b.WriteTargets, "batches", i, "write_targets"); f != nil {
			return f
		}
		for n, read := range b.Reads {
			if _, err := readable(read); err != nil {
				return faultAt(err, "batches", i, "reads", n)
			}
		}
		for n, item := range b.Items {
			if other, twice := in[item]; twice {
				return faultAt(lockkeeper.WithNext(fmt.Errorf("item %q of batch %s is already in batch %s", item, b.ID, other), "keep it in one batch"), "batches", i, "items", n)
			}
			in[item] = b.ID
		}
		for n, id := range b.After {
			if !before[id] {
				return faultAt(lockkeeper.WithNext(fmt.Errorf("batch %s comes after %q, which is not an earlier batch", b.ID, id), "name an earlier batch, or change the order"), "batches", i, "after", n)
			}
		}
		before[b.ID] = true
	}
	return nil
}

// CheckSynthesis checks that a synthesis has each possible item once and no others.
func CheckSynthesis(s Synthesis, e Extract) error {
	if f := uniqueIn(s.Items, func(it Ready) string { return it.ID }, s.Dropped); f != nil {
		return f.in("synthesis")
	}
	open := map[string]bool{}
	for _, it := range e.Items {
		open[it.ID] = true
	}
	said := map[string]bool{}
	for _, it := range s.Items {
		said[it.ID] = true
	}
	for _, d := range s.Dropped {
		said[d.ID] = true
	}
	var problems []error
	for _, id := range sortedKeys(said) {
		if !open[id] {
			problems = append(problems, wrong(id, "no possible item has this id", "use the ids of the possible items"))
		}
	}
	for _, it := range e.Items {
		if !said[it.ID] {
			problems = append(problems, wrong(it.ID, "neither kept nor dropped", "keep or drop each possible item"))
		}
	}
	return errors.Join(problems...)
}

// A fault is a problem at a position in a document.
type fault struct {
	at  []string // names of members and numbers of elements, from the top
	err error
}

func faultAt(err error, place ...any) *fault {
	f := &fault{err: err}
	for _, part := range place {
		f.at = append(f.at, fmt.Sprint(part))
	}
	return f
}

func wrong(value, reason, next string) error {
	return &lockkeeper.InputError{Field: "value", Value: value, Reason: reason, Next: next}
}

// A DocumentError reports a problem at a position in a file.
type DocumentError struct {
	File         string
	Line, Column int    // start at 1; 0: unknown
	Member       string // path of the member, such as batches/0/write_targets/1; empty: the whole document
	Err          error
}

func (e *DocumentError) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	if e.Member != "" {
		s += ": " + e.Member
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the problem.
func (e *DocumentError) Unwrap() error { return e.Err }

func (e *DocumentError) Code() lockkeeper.Code {
	if over, ok := errors.AsType[*lockkeeper.OverLockError](e.Err); ok {
		return over.Code()
	}
	return lockkeeper.CodeInput
}

// in returns the fault of a value that was not read from a file.
func (f *fault) in(what string) error {
	return &DocumentError{File: what, Member: strings.Join(f.at, "/"), Err: f.err}
}

// inText returns the fault with its line and column in a JSON text.
func (f *fault) inText(file string, text []byte) error {
	e := &DocumentError{File: file, Member: strings.Join(f.at, "/"), Err: f.err}
	e.Line, e.Column = jsonplace.Position(text, jsonplace.Find(text, f.at))
	return e
}
