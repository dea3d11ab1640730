package lockkeeper

import (
	"regexp"
	"strings"
	"time"
)

// nextMark separates, in the message of an error, what happened from what to do next.
const nextMark = "; next: "

// WithNext returns err with a next step: a command or an instruction for the person or
// agent who reads the error. The message of the result ends with the step. Code that shows
// the step separately calls Message and NextStep instead of parsing the text.
func WithNext(err error, next string) error {
	if err == nil || next == "" {
		return err
	}
	return &hintedError{err, next}
}

// hintedError is an error with a next step.
type hintedError struct {
	error
	next string
}

func (e *hintedError) Error() string    { return JoinNext(e.error.Error(), e.next) }
func (e *hintedError) Unwrap() error    { return e.error }
func (e *hintedError) NextStep() string { return e.next }

// NextStep returns the next step of err, or of the first error in its tree that has one. An
// error type has one if it has a method NextStep() string.
func NextStep(err error) string {
	if e, ok := err.(interface{ NextStep() string }); ok && e.NextStep() != "" {
		return e.NextStep()
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return NextStep(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if next := NextStep(part); next != "" {
				return next
			}
		}
	}
	return ""
}

// Message returns the message of an error without its next step.
func Message(err error) string {
	text, step := err.Error(), nextMark+NextStep(err)
	if at := strings.LastIndex(text, step); at >= 0 && step != nextMark {
		return text[:at] + text[at+len(step):]
	}
	return text
}

// Parts returns the errors that err joins (see errors.Join), or err alone.
func Parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var parts []error
	for _, part := range joined.Unwrap() {
		parts = append(parts, Parts(part)...)
	}
	return parts
}

// JoinNext appends a next step to a message. The Error methods of types that have a next
// step use it.
func JoinNext(message, next string) string {
	if next == "" {
		return message
	}
	return message + nextMark + next
}

var utcTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z\b`)

// LocalTimes returns a message for people, with its times in local time. The messages of
// errors have UTC, because programs and other machines read them too.
func LocalTimes(message string) string {
	return utcTime.ReplaceAllStringFunc(message, func(text string) string {
		at, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "T", 1))
		if err != nil {
			return text
		}
		return at.Local().Format("2006-01-02 15:04:05 -0700")
	})
}
