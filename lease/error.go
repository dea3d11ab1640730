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

// errNoPlace says that the directory of a lease file does not exist.
var errNoPlace = errors.New("its directory does not exist")

// HeldError says that somebody else had the lease for as long as was waited.
type HeldError struct {
	Path     string
	Owner    string // who asked
	By       Info
	Waited   time.Duration
	Attempts int
	Next     string // what to do; empty: in general terms
}

func (e *HeldError) Error() string {
	next := cmp.Or(e.Next, e.remedy(), "ask again with a timeout of "+e.Patience().String())
	asked := "once"
	if e.Attempts != 1 {
		asked = fmt.Sprintf("%d times", e.Attempts)
	}
	return fmt.Sprintf("lease %s: another process is running and holds it: %s; waited %s and asked %s; next: %s",
		e.Path, e.By, e.Waited.Round(time.Millisecond), asked, next)
}

// remedy is what helps where waiting does not, and empty elsewhere: nobody can tell when
// a lease ends that may not be read.
func (e *HeldError) remedy() string {
	if e.By.State == Unclear && e.By.StaleAt == nil {
		return "ask whoever it belongs to whether it is in use; they, or an administrator, may make it readable or remove it"
	}
	return ""
}

// Code implements the classing of lockkeeper.CodeOf.
func (e *HeldError) Code() lockkeeper.Code { return lockkeeper.CodeTimeout }

// AdviseToWait makes a command that waits for long enough the next step, where waiting
// helps.
func (e *HeldError) AdviseToWait(command string) { e.Next = cmp.Or(e.remedy(), command) }

// Patience is a timeout with which the lease is had in the end, if its holder does not
// renew it.
func (e *HeldError) Patience() time.Duration {
	if e.By.StaleAt == nil {
		return 2 * DefaultTimeout
	}
	return min(max(time.Until(*e.By.StaleAt), 0), farthest).Truncate(time.Minute) + time.Minute
}

// LostError says that a lease is not held any more by who thought so.
type LostError struct {
	Path string
	Now  Info // what is there
}

func (e *LostError) Error() string {
	what := "it is held by " + e.Now.String()
	switch {
	case e.Now.State == Free:
		what = "its file is gone"
	case e.Now.ExpiresAt == nil:
		what = "its file is no lease any more (" + legible(e.Now.Fact) + ")"
	}
	return fmt.Sprintf("lease %s is lost: %s; next: stop the work it was for, and acquire it again", e.Path, what)
}

// Code implements the classing of lockkeeper.CodeOf.
func (e *LostError) Code() lockkeeper.Code { return lockkeeper.CodeNotHeld }

// String says who holds a lease, since when and until when.
func (i Info) String() string {
	text := cmp.Or(legible(i.Owner), "somebody unknown")
	if i.PID != 0 {
		text += fmt.Sprintf(" (pid %d)", i.PID)
	}
	for _, part := range []struct {
		name string
		at   *time.Time
	}{{"since", i.CreatedAt}, {"last renewed", i.RenewedAt}, {"until", i.ExpiresAt}, {"may be broken from", i.StaleAt}} {
		if part.at != nil {
			text += ", " + part.name + " " + shown(*part.at)
		}
	}
	for _, h := range i.Holders {
		if h.Phase != "" {
			text += ", in phase " + legible(h.Phase)
		}
	}
	if i.Fact != "" {
		text += "; " + legible(i.Fact)
	}
	return text
}

// legible makes a text that others wrote a part of one line, which it cannot leave.
func legible(s string) string {
	hostile := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hostile) {
		return s
	}
	quoted := strconv.QuoteToGraphic(s)
	return quoted[1 : len(quoted)-1]
}

func shown(t time.Time) string { return t.UTC().Format(time.RFC3339) }
