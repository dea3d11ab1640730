package lease

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lockkeeper"
)

// errNoDirectory says that the directory of a lease file does not exist.
var errNoDirectory = errors.New("its directory does not exist")

// A HeldError says that another holder had the lease file until the timeout.
type HeldError struct {
	Path     string
	Owner    string // the requester
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

// NextStep implements lockkeeper.NextStep.
func (e *HeldError) NextStep() string {
	return cmp.Or(e.Next, e.remedy(), "retry with a timeout of "+e.RetryTimeout().String())
}

// remedy returns a next step where waiting does not help: when the file is unreadable, its
// expiry is unknown.
func (e *HeldError) remedy() string {
	if e.By.State == Unclear && e.By.StaleAt == nil {
		return "ask the owner of the file or an administrator to make it readable or to remove it"
	}
	return ""
}

// Code implements lockkeeper.CodeOf.
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

// NextStep implements lockkeeper.NextStep.
func (e *LostError) NextStep() string { return "stop the work it was for, and acquire it again" }

// Code implements lockkeeper.CodeOf.
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
