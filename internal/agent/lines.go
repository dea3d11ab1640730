package agent

import "bytes"

// maxLine is the longest line that is read. A message of an agent may carry a picture.
const maxLine = 16 << 20

// lines cuts what is written to it into lines, and passes over those that are too long.
type lines struct {
	limit   int
	each    func(line []byte)  // gets a line without its end; it is good until it returns
	tooLong func(start []byte) // gets the beginning of a line, as soon as it is too long

	rest    []byte // of the line that has no end yet; of one that is too long, its beginning
	skipped bool   // that line is too long
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
