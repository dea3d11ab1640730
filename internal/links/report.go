package links

import (
	"cmp"
	"slices"
)

// Kind is how a reference is written.
type Kind string

// The kinds of references.
const (
	Link       Kind = "link"       // [text](target), <https://…>, <a href=…>
	Image      Kind = "image"      // ![text](target), <img src=…>
	Definition Kind = "definition" // [label]: target, and [text][label]
	Code       Kind = "code"       // `path/to/file`
	Mention    Kind = "mention"    // file.md, or https://… in the text
	Document   Kind = "document"   // nobody's: the document itself
)

// Problem is what is wrong with a reference.
type Problem string

// The problems.
const (
	Missing    Problem = "missing"    // no such file
	NoAnchor   Problem = "anchor"     // no such heading in it
	Outside    Problem = "outside"    // it leads out of the repository
	Undefined  Problem = "undefined"  // nobody defines its label
	Empty      Problem = "empty"      // a link to nothing
	Unreadable Problem = "unreadable" // the document could not be checked
	Dead       Problem = "dead"       // a URL that does not answer as it should
	Refused    Problem = "refused"    // a URL that was not asked
)

// Reference is one place in a document that refers to something.
type Reference struct {
	File   string `json:"file"` // from the root
	Line   int    `json:"line"` // from 1
	Kind   Kind   `json:"kind"`
	Target string `json:"target"` // as a reader of the rendered document would get it
}

// Finding is a reference that is broken.
type Finding struct {
	Reference
	Problem Problem `json:"problem"`
	Reason  string  `json:"reason"`
	Nearest string  `json:"nearest,omitempty"` // what may have been meant: a path from the root, or #anchor
	Fix     *Fix    `json:"fix,omitempty"`     // nil: a person has to look
}

// Report is what a check found.
type Report struct {
	Documents  int         `json:"documents"`
	References int         `json:"references"`
	Asked      int         `json:"urls_asked"`
	Findings   []Finding   `json:"findings"`        // by file and line
	Valid      []Reference `json:"valid,omitempty"` // where they were asked for
	Graph      *Graph      `json:"-"`               // of a deep check
}

// Fixes is what could be rewritten, by file and line.
func (r *Report) Fixes() (list []Fix) {
	for _, f := range r.Findings {
		if f.Fix != nil {
			list = append(list, *f.Fix)
		}
	}
	return list
}

func byPlace(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return byPlace(a.Reference, b.Reference) })
	slices.SortStableFunc(r.Valid, byPlace)
}
