//go:build unix

package workspace

// Oddity is something about which a workspace is not just like the shared tree.
type Oddity struct {
	Path   string
	Kind   OddityKind
	Detail string
}

// OddityKind says what is odd.
type OddityKind string

// The kinds of oddity.
const (
	OutsideLink  OddityKind = "outside link"  // a link that leads out of the workspace; copied as it is
	Special      OddityKind = "special"       // a pipe, socket or device; left out
	Unreadable   OddityKind = "unreadable"    // left out
	Torn         OddityKind = "torn"          // never stopped changing while it was copied
	NoRepository OddityKind = "no repository" // a nested .git that leads to no repository; left out
)
