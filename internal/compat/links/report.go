package links

import (
	"cmp"
	"slices"
)

// A Kind is how a reference is written.
type Kind string

const (
	Link       Kind = "link"       // [text](target), <https://…>, <a href=…>
	Image      Kind = "image"      // ![text](target), <img src=…>
	Definition Kind = "definition" // [label]: target, and [text][label]
	Code       Kind = "code"       // `path/to/file`
	Mention    Kind = "mention"    // file.md or https://… in the text
	Document   Kind = "document"   // the document itself, not a reference
)

// A Problem is the reason why a reference is broken.
type Problem string

const (
	Missing    Problem = "missing"    // no such file
	NoAnchor   Problem = "anchor"     // no such heading in it
	Outside    Problem = "outside"    // the path is outside the repository
	Undefined  Problem = "undefined"  // the label is not defined
	Empty      Problem = "empty"      // the link is empty
	Unreadable Problem = "unreadable" // the document could not be checked
	Dead       Problem = "dead"       // a URL that returns an error
	Refused    Problem = "refused"    // a URL that was not requested
)

// A Reference is one reference in a document.
type Reference struct {
	File   string `json:"file"` // from the root
	Line   int    `json:"line"` // from 1
	Kind   Kind   `json:"kind"`
	Target string `json:"target"` // as a reader of the rendered document gets it
}

// A Finding is a broken reference.
type Finding struct {
	Reference
	Problem Problem `json:"problem"`
	Reason  string  `json:"reason"`
	Nearest string  `json:"nearest,omitempty"` // a suggestion: a path from the root, or #anchor
	Fix     *Fix    `json:"fix,omitempty"`     // nil if a person must decide
}

// A Report is the result of a check.
type Report struct {
	Documents  int         `json:"documents"`
	References int         `json:"references"`
	Asked      int         `json:"urls_asked"`
	Findings   []Finding   `json:"findings"`        // by file and line
	Valid      []Reference `json:"valid,omitempty"` // only if requested
	Graph      *Graph      `json:"-"`               // only of a deep check
}

// Fixes returns the possible fixes, by file and line.
func (r *Report) Fixes() (list []Fix) {
	for _, f := range r.Findings {
		if f.Fix != nil {
			list = append(list, *f.Fix)
		}
	}
	return list
}

func byPosition(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return byPosition(a.Reference, b.Reference) })
	slices.SortStableFunc(r.Valid, byPosition)
}
