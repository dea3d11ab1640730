package lockkeeper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Mode says what a holder may do with a target.
type Mode uint8

// The modes. Read is shared and Write is exclusive. Upgradeable can be held together with Read
// and can become Write without being released in between, so only one holder may have it.
const (
	Read Mode = iota + 1
	Upgradeable
	Write
)

var modeNames = []string{Read: "read", Upgradeable: "upgradeable", Write: "write"}

func (m Mode) String() string { return nameIn(modeNames, m, "mode") }

// nameIn returns the name of a value of an enumeration that begins with 1.
func nameIn[T ~uint8](names []string, v T, what string) string {
	if v != 0 && int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", what, uint8(v))
}

// ParseMode is the inverse of Mode.String.
func ParseMode(s string) (Mode, error) {
	if i := slices.Index(modeNames, s); i > 0 {
		return Mode(i), nil
	}
	return 0, &InputError{Field: "mode", Value: s, Reason: "unknown mode", Next: "use read, upgradeable or write"}
}

// MarshalText returns the name of the mode.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText sets m to the mode with the given name.
func (m *Mode) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMode(string(b))
	return err
}

// Conflicts reports whether two modes exclude each other on overlapping
// targets. It is symmetric:
//
//	             read  upgradeable  write
//	read           -        -         x
//	upgradeable    -        x         x
//	write          x        x         x
func Conflicts(held, asked Mode) bool {
	return held == Write || asked == Write || held == Upgradeable && asked == Upgradeable
}

// ConflictMask returns the held modes that exclude m, as bits 1<<mode, for stores that
// find conflicts in the database.
func ConflictMask(m Mode) (mask uint8) {
	for held := Read; held <= Write; held++ {
		if Conflicts(held, m) {
			mask |= 1 << held
		}
	}
	return mask
}

// Kind says what a target's path names.
type Kind uint8

// The kinds. File and Dir are paths in a codebase, Node and Tree paths in a tree of resources
// such as project/p1/map/m2.
const (
	File Kind = iota + 1
	Dir
	Node
	Tree
)

var kindNames = []string{File: "file", Dir: "dir", Node: "node", Tree: "tree"}

func (k Kind) String() string { return nameIn(kindNames, k, "kind") }

// MarshalText returns the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText sets k to the kind with the given name.
func (k *Kind) UnmarshalText(b []byte) error {
	if i := slices.Index(kindNames, string(b)); i > 0 {
		*k = Kind(i)
		return nil
	}
	return &InputError{Field: "kind", Value: string(b), Reason: "unknown kind", Next: "use file, dir, node or tree"}
}

// Below reports whether a target of this kind covers everything below its path.
// Only a Node does not. A File does, so that app/new and app/new/x.rb exclude
// each other while neither exists.
func (k Kind) Below() bool { return k != Node }

// IsTree reports whether the target is a whole subtree, which some policies do not lock for
// writing.
func (k Kind) IsTree() bool { return k == Dir || k == Tree }

// Root is the path of a target that covers a whole space.
const Root = "."

// GitTarget is the reserved target for operations that rewrite git's shared state. It can be
// locked as a whole only.
const GitTarget = ".git"

// A Target is a path that can be locked: normalized, slash-separated and relative to the
// root of the space, with its kind. Package tree makes targets of the paths that people write.
type Target struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
}

// Overlaps reports whether two targets have a path in common. It is symmetric.
func (t Target) Overlaps(u Target) bool {
	return t.Path == u.Path ||
		t.Kind.Below() && IsAncestor(t.Path, u.Path) ||
		u.Kind.Below() && IsAncestor(u.Path, t.Path)
}

// IsAncestor reports whether path is strictly below dir, segment by segment:
// app/views is an ancestor of app/views/a/b.erb and not of app/views_old/x.
func IsAncestor(dir, path string) bool {
	if dir == Root {
		return path != Root
	}
	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

// Parent returns the path directly above path. The parent of a top-level path is Root, which
// has none.
func Parent(path string) (string, bool) {
	if path == Root {
		return "", false
	}
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], true
	}
	return Root, true
}

// Compare compares targets in the global order in which a grant may grow: paths in a
// codebase first, then resources by level (projects, maps, sketches), id and path.
func (t Target) Compare(u Target) int {
	byID := 0
	if t.Level() > 0 {
		byID = cmp.Compare(lastSegment(t.Path), lastSegment(u.Path))
	}
	return cmp.Or(cmp.Compare(t.Level(), u.Level()), byID, cmp.Compare(t.Path, u.Path))
}

// Level returns 0 for a path in a codebase and the level of a resource, whose path alternates
// names of levels and ids: project/p1 has level 1, project/p1/map/m2 has level 2.
func (t Target) Level() int {
	if t.Kind == File || t.Kind == Dir {
		return 0
	}
	return (strings.Count(t.Path, "/") + 2) / 2
}

func lastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Limits on a single request.
const (
	MaxTargets  = 20_000
	MaxPathSize = 4_096
)

// Validate returns an error for a target that package tree never returns.
func (t Target) Validate() error {
	bad := func(reason string) error {
		return &InputError{Field: "path", Value: t.Path, Reason: reason, Next: "give a path inside the space, relative to its root"}
	}
	switch p := t.Path; {
	case t.Kind < File || t.Kind > Tree:
		return bad("unknown kind of target")
	case p == Root:
		return nil
	case p == "":
		return bad("empty path")
	case len(p) > MaxPathSize:
		return bad(fmt.Sprintf("path of %d bytes, over the limit of %d", len(p), MaxPathSize))
	case p[0] == '/':
		return bad("absolute path")
	case strings.HasPrefix(p, noncharacter):
		return bad("path begins with a Unicode noncharacter")
	}
	return t.validateSegments(bad)
}

// noncharacter sorts after every valid path. Stores use it as the upper bound of the paths
// below the root.
const noncharacter = "\U0010FFFF"

func (t Target) validateSegments(bad func(string) error) error {
	p := t.Path
	switch {
	case isPlain(p):
		return nil // the fast case, which covers nearly every path
	case strings.IndexByte(p, 0) >= 0:
		return bad("NUL byte in path")
	case !utf8.ValidString(p):
		return bad("path is not valid UTF-8")
	}
	for segment := range strings.SplitSeq(p, "/") {
		switch segment {
		case "", ".":
			return bad("path is not normalized")
		case "..":
			return bad("path with ..")
		}
	}
	return nil
}

// isPlain reports whether a path, or the part of one after a slash, is ASCII and has
// only plain segments. A plain segment is not empty and does not begin with a dot.
func isPlain(p string) bool {
	last := byte('/')
	for i := range len(p) {
		c := p[i]
		if (c < '0' || c >= utf8.RuneSelf) && (c-1 >= utf8.RuneSelf-1 || last == '/' && (c == '.' || c == '/')) {
			return false
		}
		last = c
	}
	return last != '/'
}

// Range returns the bounds of the paths strictly below path in byte order: lo < p < hi.
func Range(path string) (lo, hi string) {
	if path == Root {
		return "", noncharacter
	}
	return path + "/", path + "0" // '0' follows '/'
}

// A Lock is one target in one mode, requested or held.
type Lock struct {
	Target
	Mode Mode `json:"mode"`
}

// Validate refuses a lock with an invalid mode or target.
func (l Lock) Validate() error {
	if l.Mode < Read || l.Mode > Write {
		return &InputError{Field: "mode", Value: l.Mode.String(), Reason: "unknown mode", Next: "use read, upgradeable or write"}
	}
	return l.Target.Validate()
}

// ValidateAll refuses invalid locks, and a list with more locks than a request may have.
func ValidateAll(locks []Lock) error {
	if err := CheckCount(len(locks)); err != nil {
		return err
	}
	dir := "" // directory of the last lock that was validated in full, with a trailing slash
	for _, l := range locks {
		rest, inside := strings.CutPrefix(l.Path, dir)
		if dir == "" || !inside || len(l.Path) > MaxPathSize || !isPlain(rest) || l.Kind < File || l.Kind > Tree || l.Mode < Read || l.Mode > Write {
			if err := l.Validate(); err != nil {
				return err
			}
			dir = l.Path[:strings.LastIndexByte(l.Path, '/')+1]
		}
	}
	return nil
}

// CheckCount refuses more locks than a request may have.
func CheckCount(locks int) error {
	if locks <= MaxTargets {
		return nil
	}
	return &InputError{Field: "targets", Value: fmt.Sprint(locks), Reason: fmt.Sprintf("over the limit of %d", MaxTargets),
		Next: "split the work, or lock a directory for reading"}
}

// Find searches for a path in normalized locks and returns its index, or where it would be.
func Find(locks []Lock, path string) (int, bool) {
	return slices.BinarySearchFunc(locks, path, func(l Lock, p string) int { return strings.Compare(l.Path, p) })
}

// Conflicts reports whether two locks exclude each other.
func (l Lock) Conflicts(m Lock) bool { return Conflicts(l.Mode, m.Mode) && l.Overlaps(m.Target) }

func (l Lock) String() string { return l.Mode.String() + " " + l.Path }

// A Request asks for locks. It is granted as a whole or not at all.
type Request struct {
	Holder   string            `json:"holder"`
	Locks    []Lock            `json:"locks"`
	Policy   string            `json:"policy,omitempty"`   // default "agent"
	TTL      time.Duration     `json:"ttl,omitempty"`      // default: the policy's
	Process  *Process          `json:"process,omitempty"`  // recorded for holders that outlive the call
	Metadata map[string]string `json:"metadata,omitempty"` // the caller's context
	Kept     bool              `json:"-"`                  // a live process renews the lease, so the default is short
}

// Normalize sorts locks by path and merges locks on the same path into one with the strongest
// mode and the widest kind. If locks have that form already, it returns them unchanged.
func Normalize(locks []Lock) []Lock {
	sorted := true
	for i := 1; i < len(locks) && sorted; i++ {
		sorted = locks[i-1].Path < locks[i].Path
	}
	if sorted {
		return locks
	}
	out := slices.Clone(locks)
	slices.SortStableFunc(out, func(a, b Lock) int { return strings.Compare(a.Path, b.Path) })
	kept := out[:1]
	for _, l := range out[1:] {
		last := &kept[len(kept)-1]
		if l.Path != last.Path {
			kept = append(kept, l)
			continue
		}
		last.Mode = max(last.Mode, l.Mode)
		if last.Kind == Node || last.Kind == File && l.Kind == Dir {
			last.Kind = l.Kind
		}
	}
	return kept
}

// A Grant is a request that was granted.
type Grant struct {
	ID          string
	Token       string // secret; known only to the holder
	Space       string
	Holder      string
	Policy      string
	Locks       []Lock // sorted by path, one per path
	Fence       uint64
	AcquiredAt  time.Time
	ExpiresAt   time.Time // zero: never
	HeartbeatAt time.Time
	Released    bool
	Process     *Process
	Metadata    map[string]string
}

// Paths lists the paths held in one mode.
func (g *Grant) Paths(m Mode) []string { return pathsIn(g.Locks, m) }

func pathsIn(locks []Lock, m Mode) []string {
	paths := []string{}
	for i, l := range locks {
		if l.Mode == m {
			paths = append(slices.Grow(paths, len(locks)-i), l.Path)
		}
	}
	return paths
}

// Covers reports whether the grant holds exactly path for writing.
func (g *Grant) Covers(path string) bool {
	i, ok := Find(g.Locks, path)
	return ok && g.Locks[i].Mode == Write
}
