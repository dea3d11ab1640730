package lockkeeper

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Code classifies errors. The CLI maps codes to exit codes, the HTTP API to statuses.
type Code string

const (
	CodeInput     Code = "input"     // the request is invalid
	CodeBlocked   Code = "blocked"   // another holder has a lock, or an earlier request waits for one
	CodeTimeout   Code = "timeout"   // the request waited for its time limit and is still blocked
	CodeViolation Code = "violation" // refused by the gate
	CodeOverLock  Code = "over_lock" // a request to write a directory
	CodeNotHeld   Code = "not_held"  // the grant is gone, or belongs to another holder
	CodeRefused   Code = "refused"   // the policy does not allow the action, or this actor may not do it
	CodeStore     Code = "store"     // the store cannot be used safely
	CodeBudget    Code = "budget"    // the budget is used up
	CodeFailed    Code = "failed"    // anything else
)

// CodeOf returns the code of an error; CodeFailed if it has none.
func CodeOf(err error) Code {
	var coded interface{ Code() Code }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return CodeFailed
}

// ConflictKind says what blocks a request.
type ConflictKind string

// The kinds of conflict.
const (
	Held    ConflictKind = "held"    // a live grant
	Waiting ConflictKind = "waiting" // a request that came earlier
)

// A ConflictInfo is one lock that blocks a request.
type ConflictInfo struct {
	Path         string       `json:"path"`
	Mode         Mode         `json:"mode"`
	BlockingPath string       `json:"blocking_path"`
	BlockingMode Mode         `json:"blocking_mode"`
	Kind         ConflictKind `json:"kind"`
	Holder       string       `json:"holder"`
	GrantID      string       `json:"grant_id"`
	AcquiredAt   time.Time    `json:"acquired_at"` // for a waiting request: when it began to wait
	ExpiresAt    *time.Time   `json:"expires_at"`  // null: never
}

func (c ConflictInfo) String() string {
	verb := "held by"
	if c.Kind == Waiting {
		verb = "requested earlier by"
	}
	s := fmt.Sprintf("%s %s: %s %s (%s %s) since %s", c.Mode, c.Path, verb, c.Holder,
		c.BlockingMode, c.BlockingPath, c.AcquiredAt.UTC().Format(time.RFC3339))
	if c.ExpiresAt != nil {
		s += ", until " + c.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return s + ", grant " + c.GrantID
}

func joinConflicts(cs []ConflictInfo) string {
	lines := make([]string, len(cs))
	for i, c := range cs {
		lines[i] = c.String()
	}
	return strings.Join(lines, "; ")
}

// A BlockedError refuses a request that cannot be granted now.
type BlockedError struct {
	Holder    string
	Conflicts []ConflictInfo
	Truncated bool // more conflicts exist than are listed
}

func (e *BlockedError) Error() string { return "blocked: " + joinConflicts(e.Conflicts) }

func (e *BlockedError) Code() Code { return CodeBlocked }

// A LockTimeoutError refuses a request that waited for its whole time limit.
type LockTimeoutError struct {
	Holder    string
	Waited    time.Duration
	Attempts  int // how often the request was examined
	Conflicts []ConflictInfo
}

func (e *LockTimeoutError) Error() string {
	return fmt.Sprintf("timed out after %s: %s", e.Waited.Round(time.Millisecond), joinConflicts(e.Conflicts))
}

func (e *LockTimeoutError) Code() Code { return CodeTimeout }

// OverLockError refuses to lock a directory or subtree for writing.
type OverLockError struct {
	Holder string
	Path   string
	Policy string
}

func (e *OverLockError) Error() string {
	return JoinNext(fmt.Sprintf("over-lock: %s is a directory (it exists as one, or was written with a trailing slash), and policy %q writes single files only",
		e.Path, e.Policy), e.NextStep())
}

func (e *OverLockError) NextStep() string { return "name the files you will change" }
func (e *OverLockError) Code() Code       { return CodeOverLock }

// LockViolationError refuses a write that no live grant covers.
type LockViolationError struct {
	Check   string // which check failed: "allowlist", "grant", "coverage"
	Path    string
	GrantID string
	HeldBy  *ConflictInfo // who holds the path now, if any holder does
	Reason  string
	Next    string
}

func (e *LockViolationError) Error() string {
	s := fmt.Sprintf("write refused (%s): %s: %s", e.Check, e.Path, e.Reason)
	if e.HeldBy != nil {
		s += "; now " + e.HeldBy.String()
	}
	return JoinNext(s, e.Next)
}

func (e *LockViolationError) Code() Code       { return CodeViolation }
func (e *LockViolationError) NextStep() string { return e.Next }

// Violations lists the refused writes in an error that may join several.
func Violations(err error) (list []*LockViolationError) {
	for _, part := range Parts(err) {
		if v, ok := errors.AsType[*LockViolationError](part); ok {
			list = append(list, v)
		}
	}
	return list
}

// A NotHeldError says that the caller does not hold a grant.
type NotHeldError struct {
	GrantID string
	Reason  string // "unknown", "expired", "released", "wrong token", …
	Next    string
}

func (e *NotHeldError) Error() string {
	return JoinNext(fmt.Sprintf("grant %s is not held: %s", e.GrantID, e.Reason), e.Next)
}

func (e *NotHeldError) Code() Code       { return CodeNotHeld }
func (e *NotHeldError) NextStep() string { return e.Next }

// An InputError says which input is invalid and why.
type InputError struct {
	Field  string
	Value  string
	Reason string
	Next   string
}

func (e *InputError) Error() string {
	value := e.Value
	if len(value) > 200 {
		value = value[:200] + "…"
	}
	return JoinNext(fmt.Sprintf("%s %q: %s", e.Field, value, e.Reason), e.Next)
}

func (e *InputError) Code() Code       { return CodeInput }
func (e *InputError) NextStep() string { return e.Next }

// A RefusedError says that an actor or a policy does not allow an action.
type RefusedError struct {
	Act        string
	Reason     string
	Conditions []Condition // the conditions that were checked, if any
	Next       string
}

func (e *RefusedError) Error() string {
	return JoinNext(fmt.Sprintf("%s refused: %s", e.Act, e.Reason), e.Next)
}

func (e *RefusedError) Code() Code       { return CodeRefused }
func (e *RefusedError) NextStep() string { return e.Next }

// A StoreError says why a store cannot be used.
type StoreError struct {
	Store  string // which store: a path, or a host and database, never a password
	Reason string
	Next   string
	Err    error

	Temporary bool // the same call may succeed later, for example once a server has restarted
}

// IsTemporary reports whether the store cannot be used now and may be usable later.
func IsTemporary(err error) bool {
	e, ok := errors.AsType[*StoreError](err)
	return ok && e.Temporary
}

func (e *StoreError) Error() string {
	s := fmt.Sprintf("store %s: %s", e.Store, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return JoinNext(s, e.Next)
}

func (e *StoreError) Unwrap() error    { return e.Err }
func (e *StoreError) Code() Code       { return CodeStore }
func (e *StoreError) NextStep() string { return e.Next }

// A MovedError says that a file that a change depends on was changed after the change was
// tested.
type MovedError struct {
	Path    string
	Landing uint64 // 0: none, the file was changed another way
	Holder  string // the holder that made the landing
	At      time.Time
}

func (e *MovedError) Error() string {
	if e.Landing == 0 {
		return JoinNext(e.Path+" was changed without a landing, after this change was tested", e.NextStep())
	}
	return JoinNext(fmt.Sprintf("%s was changed by landing %d of %s at %s, after this change was tested",
		e.Path, e.Landing, e.Holder, e.At.UTC().Format("2006-01-02 15:04:05Z")), e.NextStep())
}

func (e *MovedError) NextStep() string { return "update the workspace and test again" }
func (e *MovedError) Code() Code       { return CodeRefused }

// A BehindError says that this machine's copy of a file is older than the last landing,
// which was on another machine. Work on this copy would undo that landing.
type BehindError struct {
	Path    string
	Want    Version // what the landing left
	Landing uint64  // 0: none, the file was changed another way
	Holder  string  // the holder that made the landing
	Site    string  // the site where the landing was made
	At      time.Time
	Fact    string
	Next    string // the command that updates this copy; empty: unknown
}

func (e *BehindError) Error() string {
	return JoinNext(fmt.Sprintf("%s: this copy is behind landing %d of %s on %s, at %s: %s",
		e.Path, e.Landing, e.Holder, e.Site, e.At.UTC().Format("2006-01-02 15:04:05Z"), e.Fact), e.NextStep())
}

func (e *BehindError) NextStep() string {
	return cmp.Or(e.Next, "update this copy, for example with git pull")
}
func (e *BehindError) Code() Code { return CodeRefused }
