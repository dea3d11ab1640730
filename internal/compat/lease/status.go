package lease

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lockkeeper"
	"lockkeeper/durable"
)

// A State is the state of a lease file.
type State string

const (
	Free    State = "free"
	Held    State = "held"
	Stale   State = "stale"   // the next process that wants the file breaks its lease
	Unclear State = "unclear" // malformed and new, or unreadable: the lease counts as held
	Refused State = "refused" // not a lease file: a directory, a link or other text
)

// An Info describes a lease file.
type Info struct {
	Path      string     `json:"path"`
	State     State      `json:"state"`
	Owner     string     `json:"owner,omitempty"`
	PID       int        `json:"pid,omitempty"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
	RenewedAt *time.Time `json:"last_renewed_at,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	StaleAt   *time.Time `json:"stale_at,omitempty"` // when the lease may be broken, as the wall clock will show it
	Fact      string     `json:"fact,omitempty"`     // anything else a person should know
	Ours      bool       `json:"ours"`               // the lease is held through this package
	Shared    bool       `json:"shared,omitempty"`
	Holders   []Holder   `json:"holders,omitempty"` // recorded holders: one, or several readers
}

// A Holder is one holder of a lease file or one of its readers.
type Holder struct {
	Owner      string        `json:"owner"`
	PID        int           `json:"pid"`
	ExpiresAt  time.Time     `json:"expires_at"`
	Phase      string        `json:"phase,omitempty"`
	AcquiredIn time.Duration `json:"acquired_in_ns"`
	Renewals   int           `json:"renewals"`
}

// Inspect returns the state of a lease file, judged with opt.Grace. It changes nothing.
func Inspect(path string, opt Options) (*Info, error) {
	l := New(path, opt)
	p, err := openLeaseFile(l.opt.Disk, path)
	switch {
	case errors.Is(err, errNoDirectory):
		return &Info{Path: path, State: Free}, nil
	case err != nil:
		return nil, err
	}
	defer p.close()
	now := l.opt.Clock()
	rec, err := recordAt(p.guardPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := p.inspect(p.name)
	if err != nil {
		return &Info{Path: path, State: Refused, Fact: err.Error()}, nil
	}
	return describe(path, f, rec, now, l.opt.Grace), nil
}

// List inspects all lease files in a directory, in acquisition order.
func List(dir string, opt Options) ([]*Info, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if opt.Disk == nil {
		opt.Disk = durable.OSDisk{}
	}
	var list []*Info
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := Inspect(filepath.Join(dir, e.Name()), opt)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b *Info) int { return compare(a.Path, b.Path) })
	return list, nil
}

// describe combines the file's content with the record of the guard.
func describe(path string, f *fileState, rec *record, now Reading, grace time.Duration) *Info {
	v, odd := judge(path, f, rec.sightingOf(f), now, grace, func() (time.Time, error) { return now.Wall, nil })
	info := &Info{Path: path, State: Held, Fact: f.problem}
	info.Owner, info.PID = f.shown.Owner, f.shown.PID // these fields are set for a malformed file, too
	info.CreatedAt, info.RenewedAt, info.ExpiresAt = timeOrNil(f.shown.CreatedAt.Time), timeOrNil(f.shown.RenewedAt.Time), timeOrNil(f.shown.ExpiresAt.Time)
	info.StaleAt = timeOrNil(v.at)
	held := rec.Held
	switch {
	case held != nil && f.hasToken(held.Token):
		info.add(held)
	case held != nil && held.isCurrent(now, grace): // the file was removed or replaced
		info.Fact = "its holder has not released it, but "
		switch p := held.payload(); {
		case f.payload != nil:
			info.Fact += "the file now belongs to " + f.payload.Owner
		default:
			info.Fact += "its file was removed"
			info.Owner, info.PID = p.Owner, p.PID
			info.CreatedAt, info.RenewedAt, info.ExpiresAt = timeOrNil(p.CreatedAt.Time), timeOrNil(p.RenewedAt.Time), timeOrNil(p.ExpiresAt.Time)
			info.StaleAt = timeOrNil(p.ExpiresAt.Add(grace))
		}
		info.add(held)
		return info
	}
	switch {
	case odd != nil:
		info.State, info.Fact = Refused, odd.Error()
	case !f.exists():
		info.State = Free
	case v.stale:
		info.State = Stale
	case f.payload == nil:
		info.State = Unclear
	}
	return info
}

func (i *Info) add(h *hold) {
	i.Ours, i.Shared = true, h.Shared
	for _, s := range h.By {
		i.Holders = append(i.Holders, Holder{s.Owner, s.PID, s.ExpiresAt.Time, s.Phase, s.AcquiredIn, s.Renewals})
	}
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

var errNoDirectory = errors.New("its directory does not exist")

// A HeldError says that another holder had the lease file until the timeout.
type HeldError struct {
	Path     string
	Owner    string // name of the requester
	By       Info
	Waited   time.Duration
	Attempts int
	Next     string // overrides the general next step
}

func (e *HeldError) Error() string {
	asked := "once"
	if e.Attempts != 1 {
		asked = fmt.Sprintf("%d times", e.Attempts)
	}
	return lockkeeper.JoinNext(fmt.Sprintf("lease file %s: another process is running and holds it: %s; waited %s, tried %s",
		e.Path, e.By, e.Waited.Round(time.Millisecond), asked), e.NextStep())
}

func (e *HeldError) NextStep() string {
	return cmp.Or(e.Next, e.remedy(), "retry with a timeout of "+e.RetryTimeout().String())
}

// remedy returns a next step if the file is unreadable. Waiting does not help then, because the
// expiry of the file is unknown.
func (e *HeldError) remedy() string {
	if e.By.State == Unclear && e.By.StaleAt == nil {
		return "ask the owner of the file or an administrator to make it readable or to remove it"
	}
	return ""
}

func (e *HeldError) Code() lockkeeper.Code { return lockkeeper.CodeTimeout }

// AdviseToWait sets the next step to a command that waits long enough, unless waiting does
// not help.
func (e *HeldError) AdviseToWait(command string) { e.Next = cmp.Or(e.remedy(), command) }

// RetryTimeout returns a timeout after which the lease file can be acquired if its holder
// does not renew it.
func (e *HeldError) RetryTimeout() time.Duration {
	if e.By.StaleAt == nil {
		return 2 * DefaultTimeout
	}
	return min(max(time.Until(*e.By.StaleAt), 0), maxLeaseTime).Truncate(time.Minute) + time.Minute
}

// A LostError says that a lease is no longer held.
type LostError struct {
	Path string
	Now  Info // the current state of the file
}

func (e *LostError) Error() string {
	what := "it is held by " + e.Now.String()
	switch {
	case e.Now.State == Free:
		what = "its file is gone"
	case e.Now.ExpiresAt == nil:
		what = "its file is malformed (" + sanitize(e.Now.Fact) + ")"
	}
	return lockkeeper.JoinNext(fmt.Sprintf("lease file %s is lost: %s", e.Path, what), e.NextStep())
}

func (e *LostError) NextStep() string { return "stop the work it was for, and acquire it again" }

func (e *LostError) Code() lockkeeper.Code { return lockkeeper.CodeNotHeld }

// String returns the holder, since when and until when.
func (i Info) String() string {
	text := cmp.Or(sanitize(i.Owner), "unknown holder")
	if i.PID != 0 {
		text += fmt.Sprintf(" (pid %d)", i.PID)
	}
	for _, part := range []struct {
		name string
		at   *time.Time
	}{{"since", i.CreatedAt}, {"last renewed", i.RenewedAt}, {"until", i.ExpiresAt}, {"may be broken from", i.StaleAt}} {
		if part.at != nil {
			text += ", " + part.name + " " + formatTime(*part.at)
		}
	}
	for _, h := range i.Holders {
		if h.Phase != "" {
			text += ", in phase " + sanitize(h.Phase)
		}
	}
	if i.Fact != "" {
		text += "; " + sanitize(i.Fact)
	}
	return text
}

// sanitize escapes control characters in foreign text so that it stays within its line.
func sanitize(s string) string {
	hostile := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hostile) {
		return s
	}
	quoted := strconv.QuoteToGraphic(s)
	return quoted[1 : len(quoted)-1]
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
