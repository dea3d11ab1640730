package refusal

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"lockkeeper/internal/encoding/shellword"
)

// Holder is who is in the way, as people recognise them.
type Holder struct {
	Callsign string        `json:"callsign"`
	TTY      string        `json:"tty,omitempty"`
	About    string        `json:"about,omitempty"` // what it works on, in its own words
	For      time.Duration `json:"for"`             // how long it has held it, or waited for it
	Wrote    bool          `json:"wrote"`           // whether the file was written since
	Idle     time.Duration `json:"idle,omitempty"`  // how long ago
	Waits    bool          `json:"waits,omitempty"` // it does not hold it, and came earlier
}

// Refusal says that something may not be written, why, and how to go on.
type Refusal struct {
	Subject string   `json:"subject"` // a path, or an act such as git stash
	Why     string   `json:"why"`
	Holder  *Holder  `json:"holder,omitempty"` // nil: nobody is in the way
	Ticket  int      `json:"ticket,omitempty"` // under which it is told that the path is free
	Do      string   `json:"do"`               // instead
	Free    []string `json:"free,omitempty"`   // what could be written now
	Next    []string `json:"next"`
}

// Held refuses a path that somebody else has.
func Held(path string, by Holder, ticket int, free []string) Refusal {
	r := Refusal{Subject: path, Why: by.String(), Holder: &by, Ticket: ticket, Free: free,
		Do:   "Do not retry; do not write it by shell.",
		Next: []string{"lockkeeper why " + shellword.Printable(path), "lockkeeper defer " + shellword.Printable(path) + " < patch"}}
	if ticket > 0 {
		r.Do += fmt.Sprintf(" You will be told when it is free (ticket %d).", ticket)
	}
	return r
}

// Beside refuses a path that another agent of the same window is at work on.
func Beside(path, kind string, since time.Duration) Refusal {
	who := "another agent of this window"
	if kind != "" {
		who += " (" + kind + ")"
	}
	return Refusal{Subject: path, Why: who + " is at work on it, " + Span(since),
		Do:   "Do not retry; do not write it by shell. It is free when that agent has ended: leave it to them, or say in your answer what is to be done.",
		Next: []string{"lockkeeper why " + shellword.Printable(path)}}
}

// RewritesBeside refuses an act of git that changes files under another agent of the same
// window; of one of them Beside says who that is.
func RewritesBeside(act string, beside Refusal) Refusal {
	return Refusal{Subject: act, Why: "it rewrites the files or the branch that others work on, such as " + line(beside.Subject) + ": " + beside.Why,
		Do:   "Do not retry; do not do it in another way. Name only files of your own, or leave this until that agent has ended.",
		Next: beside.Next}
}

// Unseen refuses to replace the whole of a file by somebody who does not know what is in
// it; fact says since when, or why.
func Unseen(path, fact string) Refusal {
	return Refusal{Subject: path, Why: "its content is not what you saw: " + fact,
		Do:   "Read it now, then write what you want of it; whoever changed it keeps their work.",
		Next: []string{"read " + shellword.Printable(path), "lockkeeper why " + shellword.Printable(path)}}
}

// Rewrites refuses an act of git that changes files under others: one of them is path, and
// more says how many there are besides.
func Rewrites(act, path string, by Holder, more int) Refusal {
	why := "it rewrites the files or the branch that others work on: " + line(path) + " is " + by.String()
	if more > 0 {
		why += fmt.Sprintf(", and %d more", more)
	}
	return Refusal{Subject: act, Why: why, Holder: &by,
		Do:   "Do not retry; do not do it in another way. Work on in the files as they are, and leave this to the end.",
		Next: []string{"lockkeeper status", "git diff, or git worktree add for a copy of your own"}}
}

// Discards refuses an act that takes away what nobody could bring back, and what the one
// who asks neither made nor read: some of the files, and how many there are in all.
func Discards(act string, some []string, all int) Refusal {
	names := strings.Join(some, ", ")
	if more := all - len(some); more > 0 {
		names += fmt.Sprintf(", and %d more", more)
	}
	return Refusal{Subject: act, Why: "it takes away what is not committed, and what you neither made nor read in this session: " + names,
		Do:   "Somebody may be at work on it. Name only what is yours; or read it first, or move it aside.",
		Next: []string{"read " + shellword.Printable(some[0]), "git status --short"}}
}

// Unkept refuses a command that removes files it does not name, because uncommitted files
// could not be copied first. some are such files, all is their number, and why is the reason
// for the first of them. Without some, no file could be copied.
func Unkept(act string, some []string, all int, why string) Refusal {
	r := Refusal{Subject: act, Why: "it does not name the files that it removes, and uncommitted files cannot be copied first: ",
		Do: "Name the files that you want to remove, without patterns that a program resolves."}
	if len(some) == 0 {
		r.Why += why
		r.Next = []string{"lockkeeper doctor"}
		return r
	}
	r.Why += strings.Join(some, ", ")
	if more := all - len(some); more > 0 {
		r.Why += fmt.Sprintf(", and %d more", more)
	}
	r.Why += " (" + why + ")"
	// It only looks: to stage or move a file would change what another holder works on.
	r.Next = []string{"ls -ld -- " + shellword.Printable(some[0]), "lockkeeper why " + shellword.Printable(some[0])}
	return r
}

// Busy refuses a write while somebody rewrites files with git.
func Busy(path string, by Holder) Refusal {
	return Refusal{Subject: path, Why: "git is rewriting files here, .git is " + by.String(), Holder: &by,
		Do:   "Wait for a moment, then try again once.",
		Next: []string{"lockkeeper why .git"}}
}

// Reserved refuses what an agent never does, and says what to do instead where that helps.
func Reserved(subject, why string, instead ...string) Refusal {
	return Refusal{Subject: subject, Why: why,
		Do:   "Do not try another way. If you need it, tell your user what and why.",
		Next: append(instead, "lockkeeper status")}
}

// Unchecked refuses because the locks could not be asked.
func Unchecked(subject string, trouble error) Refusal {
	return Refusal{Subject: subject, Why: "the locks cannot be asked: " + trouble.Error(),
		Do:   "Nothing is written until they can. Try once more; then tell the person whom you work for.",
		Next: []string{"lockkeeper doctor", "a person, at a terminal: lockkeeper off 30m"}}
}

// String is who is in the way, in the words of the first line.
func (h Holder) String() string {
	var b strings.Builder
	if h.Waits {
		b.WriteString("awaited earlier by ")
	} else {
		b.WriteString("held by ")
	}
	b.WriteString(h.Name())
	if h.About != "" {
		fmt.Fprintf(&b, " %q", short(h.About))
	}
	b.WriteString(", " + Span(h.For))
	switch {
	case h.Waits:
	case h.Wrote:
		b.WriteString(", last write " + Span(h.Idle) + " ago")
	default:
		b.WriteString(", not written yet")
	}
	return b.String()
}

// Name is how one calls a holder: the callsign, and where it sits.
func (h Holder) Name() string {
	if h.TTY == "" {
		return line(h.Callsign)
	}
	return line(h.Callsign) + " (" + line(h.TTY) + ")"
}

// String is the whole text.
func (r Refusal) String() string {
	lines := []string{"REFUSED " + line(r.Subject) + ": " + line(r.Why), line(r.Do)}
	if len(r.Free) > 0 {
		lines = append(lines, "  free now: "+line(strings.Join(r.Free, ", ")))
	}
	return strings.Join(append(lines, "next: "+line(strings.Join(r.Next, " | "))), "\n")
}

// Error lets a refusal be returned where an error is.
func (r Refusal) Error() string { return r.String() }

// aboutSize is how much of what somebody works on is told, in characters.
const aboutSize = 60

// short is the beginning of a text, up to a word's end.
func short(text string) string {
	runes := []rune(line(text))
	if len(runes) <= aboutSize {
		return string(runes)
	}
	cut := string(runes[:aboutSize])
	if at := strings.LastIndexByte(cut, ' '); at > aboutSize/2 {
		cut = cut[:at]
	}
	return cut + "…"
}

// line is a text on one line, without what a terminal would obey.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), " ")
}

// Span is a time as one says it: 40 s, 4 min, 3 h, 2 days.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
