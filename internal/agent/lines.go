package agent

import "bytes"

// maxLine is the longest line that is read. A message may contain an image.
const maxLine = 16 << 20

// A lines splits its input into lines and skips those that are too long.
type lines struct {
	limit   int
	each    func(line []byte)  // gets a line without its end; valid until it returns
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
