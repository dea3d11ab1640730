package refusal

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"lockkeeper/internal/encoding/shellword"
)

// A Holder describes who blocks a write, in terms that people recognize.
type Holder struct {
	Callsign string        `json:"callsign"`
	TTY      string        `json:"tty,omitempty"`
	About    string        `json:"about,omitempty"` // the holder's task, in its own words
	For      time.Duration `json:"for"`             // how long the holder has held the path, or waited for it
	Wrote    bool          `json:"wrote"`           // the file was written since then
	Idle     time.Duration `json:"idle,omitempty"`  // time since the holder last wrote the path
	Waits    bool          `json:"waits,omitempty"` // the holder does not hold the path but asked for it earlier
}

// A Refusal says what may not be written, why, and what to do instead.
type Refusal struct {
	Subject string   `json:"subject"` // a path, or a command such as git stash
	Why     string   `json:"why"`
	Holder  *Holder  `json:"holder,omitempty"` // nil: no holder blocks it
	Ticket  int      `json:"ticket,omitempty"` // number under which the path is announced when it is free
	Do      string   `json:"do"`               // what to do instead
	Free    []string `json:"free,omitempty"`   // related paths that are free
	Next    []string `json:"next"`
}

// Held refuses a path that another holder has locked. A patch of it can be deferred or not.
func Held(path string, by Holder, ticket int, free []string, deferrable bool) Refusal {
	r := Refusal{Subject: path, Why: by.String(), Holder: &by, Ticket: ticket, Free: free,
		Do:   "Do not retry; do not write it by shell.",
		Next: []string{"lockkeeper why " + shellword.Printable(path)}}
	if deferrable {
		r.Next = append(r.Next, "lockkeeper defer "+shellword.Printable(path)+" < patch")
	}
	if ticket > 0 {
		r.Do += fmt.Sprintf(" You will be told when it is free (ticket %d).", ticket)
	}
	return r
}

// Subagent refuses a path that another subagent of the same session is working on.
func Subagent(path, kind string, since time.Duration) Refusal {
	who := "another subagent of this session"
	if kind != "" {
		who += " (" + kind + ")"
	}
	return Refusal{Subject: path, Why: who + " is working on it, " + Span(since),
		Do:   "Do not retry; do not write it by shell. It is free when that agent ends. Leave it to that agent, or say in your answer what needs to change.",
		Next: []string{"lockkeeper why " + shellword.Printable(path)}}
}

// RewritesSubagent refuses a git command that changes files which another subagent of the
// same session is working on. held is the refusal of one of these files.
func RewritesSubagent(act string, held Refusal) Refusal {
	return Refusal{Subject: act, Why: "it rewrites the files or the branch that others work on, such as " + Line(held.Subject) + ": " + held.Why,
		Do:   "Do not retry; do not do it in another way. Name only your own files, or do this after that agent has ended.",
		Next: held.Next}
}

// Unseen refuses to replace a whole file whose content the session does not know. fact says
// why.
func Unseen(path, fact string) Refusal {
	return Refusal{Subject: path, Why: "its content is not what you saw: " + fact,
		Do:   "Read it now, then write your version and keep the changes of others.",
		Next: []string{"read " + shellword.Printable(path), "lockkeeper why " + shellword.Printable(path)}}
}

// Rewrites refuses a git command that changes files of others: path is one of them, and
// more is the number of the rest.
func Rewrites(act, path string, by Holder, more int) Refusal {
	why := "it rewrites the files or the branch that others work on: " + Line(path) + " is " + by.String()
	if more > 0 {
		why += fmt.Sprintf(", and %d more", more)
	}
	return Refusal{Subject: act, Why: why, Holder: &by,
		Do:   "Do not retry; do not do it in another way. Continue with the files as they are, and do this last, or work in a work tree of your own.",
		Next: []string{"lockkeeper status", "git diff", "git worktree add ../copy"}}
}

// Commits refuses a git command that stages, unstages or commits changes of others: path is one
// of the files, and more is the number of the rest.
func Commits(act, path string, by Holder, more int) Refusal {
	why := "it concerns uncommitted work of others: " + Line(path) + " is " + by.String()
	if more > 0 {
		why += fmt.Sprintf(", and %d more", more)
	}
	return Refusal{Subject: act, Why: why, Holder: &by,
		Do:   "Do not do it in another way. Commit only your own changes: lockkeeper commit finds them and leaves the files of others out, also staged ones.",
		Next: []string{`lockkeeper commit -m "what changed"`, "lockkeeper gate changes"}}
}

// CommitsSubagent refuses a git command that stages or commits a file which another subagent of
// the same session is working on. held is the refusal of that file.
func CommitsSubagent(act string, held Refusal) Refusal {
	return Refusal{Subject: act, Why: "it concerns uncommitted work of others: " + Line(held.Subject) + ": " + held.Why,
		Do:   "Do not do it in another way. Name only your own files, or commit after that agent has ended.",
		Next: held.Next}
}

// Discards refuses a command that removes uncommitted files which the session neither
// created nor read. some are such files, and all is their number.
func Discards(act string, some []string, all int) Refusal {
	names := strings.Join(some, ", ")
	if more := all - len(some); more > 0 {
		names += fmt.Sprintf(", and %d more", more)
	}
	return Refusal{Subject: act, Why: "it removes uncommitted files that you neither created nor read in this session: " + names,
		Do:   "They may belong to another session or a person. Name only your own files, or read these first, or move them aside.",
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
	// It only reads: to stage or move a file would change what another holder works on.
	r.Next = []string{"ls -ld -- " + shellword.Printable(some[0]), "lockkeeper why " + shellword.Printable(some[0])}
	return r
}

// Busy refuses a write while another session rewrites files with git.
func Busy(path string, by Holder) Refusal {
	return Refusal{Subject: path, Why: "git is rewriting files here, .git is " + by.String(), Holder: &by,
		Do:   "Wait a moment, then retry once.",
		Next: []string{"lockkeeper why .git"}}
}

// Reserved refuses what no agent may do. instead lists alternatives.
func Reserved(subject, why string, instead ...string) Refusal {
	return Refusal{Subject: subject, Why: why,
		Do:   "Do not try another way. If you need it, tell your user what and why.",
		Next: append(instead, "lockkeeper status")}
}

// Unchecked refuses a call because the locks could not be checked.
func Unchecked(subject string, trouble error) Refusal {
	return Refusal{Subject: subject, Why: "cannot check the locks: " + trouble.Error(),
		Do:   "No write is allowed until they can be checked. Retry once; then tell your user.",
		Next: []string{"lockkeeper doctor", "a person, at a terminal: lockkeeper off 30m"}}
}

// String describes the holder for the first line of a refusal.
func (h Holder) String() string {
	var b strings.Builder
	if h.Waits {
		b.WriteString("requested earlier by ")
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

// Since describes the holder for a message that stays on a screen, where the time since a lock
// was acquired would grow old. since is the time of day.
func (h Holder) Since(since string) string {
	text := "held by " + h.Name() + " since " + since
	if h.About != "" {
		text += fmt.Sprintf(", for %q", short(h.About))
	}
	return text
}

func (h Holder) Name() string {
	if h.TTY == "" {
		return Line(h.Callsign)
	}
	return Line(h.Callsign) + " (" + Line(h.TTY) + ")"
}

func (r Refusal) String() string {
	lines := []string{"REFUSED " + Line(r.Subject) + ": " + Line(r.Why), Line(r.Do)}
	if len(r.Free) > 0 {
		lines = append(lines, "  free now: "+Line(strings.Join(r.Free, ", ")))
	}
	return strings.Join(append(lines, "next: "+Line(strings.Join(r.Next, " | "))), "\n")
}

func (r Refusal) Error() string { return r.String() }

// aboutSize is the length, in characters, to which a holder's task is shortened.
const aboutSize = 60

// short returns the beginning of a text, up to the end of a word.
func short(text string) string {
	runes := []rune(Line(text))
	if len(runes) <= aboutSize {
		return string(runes)
	}
	cut := string(runes[:aboutSize])
	if at := strings.LastIndexByte(cut, ' '); at > aboutSize/2 {
		cut = cut[:at]
	}
	return cut + "…"
}

// Line returns a text on one line, without control characters.
func Line(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), " ")
}

// Span formats a duration: 40 s, 4 min, 3 h, 2 days.
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
