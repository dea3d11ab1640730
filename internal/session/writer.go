package session

import (
	"lockkeeper/internal/session/refusal"
)

// A Writer is the session that changed a file of another holder, as far as the records say.
type Writer struct {
	Name string // empty: no record names the writer
	Sure bool   // the writer's record has the file in this state; otherwise only a command of the writer ran when the file changed
}

// String names who changed a file, as far as the records say.
func (w Writer) String() string {
	switch {
	case w.Sure:
		return "session " + w.Name
	case w.Name != "":
		return "a command of session " + w.Name + ", which ran at that time, or an editor"
	}
	return "an editor or an agent without hooks"
}

// writer finds the session that left a file in its current state.
func (s *Session) writer(path string, now Print) (w Writer, err error) {
	known, err := s.registry.records()
	if err != nil {
		return w, err
	}
	for file, r := range known {
		if file == s.file {
			continue
		}
		name := refusal.Holder{Callsign: r.Callsign, TTY: r.TTY}.Name()
		left, isKnown := r.Files[path]
		told, wasTold := r.Told[path]
		switch {
		case isKnown && left.Own && left.Found == nil && !left.touched(now), wasTold && !told.Is.touched(now):
			return Writer{Name: name, Sure: true}, nil
		case now.Inode != 0 && w.Name == "" && r.ranAt(now.Mtime):
			w.Name = name
		}
	}
	return w, nil
}

// ranAt reports whether a command of the session ran at a time, by the clock that stamps files.
func (r *record) ranAt(at int64) bool {
	for _, c := range r.Calls {
		if c.Command != "" && c.At <= at && at-c.At < int64(longestCall) {
			return true
		}
	}
	for _, span := range r.Ran {
		if span.From <= at && at <= span.To {
			return true
		}
	}
	return false
}
