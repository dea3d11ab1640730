package agent

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A reader reads the output of a call as it grows.
type reader struct {
	file   *os.File
	stream stream
	lines  lines
	buf    []byte

	size    int64  // number of bytes read
	known   bool   // a line belonged to the protocol
	garbage int    // number of lines that do not belong to the protocol
	sample  string // the first line that does not belong to the protocol
}

func newReader(file *os.File, s stream, tell func(Event)) *reader {
	r := &reader{file: file, stream: s, buf: make([]byte, 64<<10)}
	say := func(e Event) {
		e.At, e.Text = time.Now(), clean(e.Text, maxEventText)
		tell(e)
	}
	strange := func(line []byte) {
		text := quote(string(line))
		if r.garbage++; r.garbage == 1 {
			r.sample = text
			say(Event{Kind: EventGarbage, Text: text})
		}
	}
	tooLong := func(start []byte) {
		s.skip()
		strange(start)
	}
	r.lines = lines{limit: maxLine, tooLong: tooLong, each: func(line []byte) {
		switch {
		case s.line(line, say):
			r.known = true
		case len(line) > 0:
			strange(line)
		}
	}}
	return r
}

// advance reads new output, at most about limit bytes, and reports whether there was any.
func (r *reader) advance(limit int64) (moved bool, err error) {
	for read := int64(0); read < limit; {
		n, err := r.file.Read(r.buf)
		r.lines.write(r.buf[:n])
		r.size += int64(n)
		read += int64(n)
		moved = moved || n > 0
		if errors.Is(err, io.EOF) {
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

func (r *reader) finished(exit *Exit) bool { return r.stream.finished(r.lines.rest, exit) }

// unfinished returns the reason why an agent that ended by itself left no result.
func (r *reader) unfinished(from Origin, exit Exit, said string) error {
	if f := r.stream.ended(exit, said); f != nil {
		return f.from(from)
	}
	switch {
	case !exit.ok():
		reason := exit.String() + ", without a result"
		if last := cmp.Or(said, r.sample); last != "" {
			reason += fmt.Sprintf(", last line %q", last)
		}
		return &Error{Origin: from, Kind: Crashed, Reason: reason}
	case r.size == 0:
		return &Error{Origin: from, Kind: Empty}
	case r.known:
		return &Error{Origin: from, Kind: Garbage, Reason: "it ended without a result", Sample: r.sample}
	}
	lines := "no line"
	if r.garbage > 0 {
		lines = fmt.Sprintf("none of %d lines", r.garbage)
	}
	return &Error{Origin: from, Kind: Garbage, Reason: lines + " belongs to its protocol", Sample: r.sample}
}

// maxLine is the longest line that is read. A message may contain an image.
const maxLine = 16 << 20

// A lines splits its input into lines and skips those that are too long.
type lines struct {
	limit   int
	each    func(line []byte)  // gets a line without its end; the line is valid until the function returns
	tooLong func(start []byte) // gets the beginning of a line that is too long

	rest    []byte // the incomplete line; only its beginning if it is too long
	skipped bool   // the incomplete line is too long
}

func (l *lines) write(b []byte) {
	for len(b) > 0 {
		part, after, whole := bytes.Cut(b, []byte{'\n'})
		b = after
		if whole && len(l.rest) == 0 && len(part) <= l.limit {
			l.each(part)
			continue
		}
		if !l.skipped {
			l.rest = append(l.rest, part...)
		}
		if len(l.rest) > l.limit {
			l.rest, l.skipped = bytes.Clone(l.rest[:min(quotable, l.limit)]), true
			l.tooLong(l.rest)
		}
		if !whole {
			return
		}
		if !l.skipped {
			l.each(l.rest)
		}
		l.rest, l.skipped = l.rest[:0], false
	}
}
