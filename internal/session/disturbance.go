package session

import (
	"context"
	"fmt"

	"lockkeeper"
	"lockkeeper/rescue"
)

// A Disturbance is a file that this session holds and that another program changed.
type Disturbance struct {
	Path          string
	Gone          bool
	DuringCommand bool   // a command of the session ran at that time and may have made the change
	Rescue        string // id of the session's version on the rescue shelf; empty: not kept
	By            Writer
	Beside        []string // further agents of the session that work on the file, or whose command may have made the change, by the host's id
}

// Disturbed checks whether the files that the session holds are as it left them. It reports each
// changed file once and keeps the session's version. It skips files that calls in progress may be
// writing. c is the call that just ended, or the zero Call.
func (s *Session) Disturbed(ctx context.Context, c Call) (list []Disturbance, err error) {
	now, err := fileClock()
	if err != nil {
		return nil, err
	}
	c = s.with(c, now)
	paths, err := s.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		was, known := s.rec.Files[path]
		if !known || path == lockkeeper.GitTarget || s.rec.mayWrite(path, now) {
			continue
		}
		is, err := s.registry.stat(path)
		if err != nil {
			return nil, err
		}
		if !was.expected().touched(is) {
			continue
		}
		is, content, err := s.registry.read(path)
		if err != nil {
			return nil, err
		}
		if !was.expected().changed(is) {
			s.rec.Files[path] = was.withPrint(is)
			continue
		}
		if was.Own && was.Sum != "" && was.Sum == is.Sum || s.growsInBackground(path, was, is, content, now) {
			s.rec.Files[path] = File{Print: is, Own: true, Seen: true} // the content is back, or is still the session's own work
			continue
		}
		d := Disturbance{Path: path, Gone: is.Inode == 0}
		d.DuringCommand = c.At != 0 && (d.Gone || is.Ctime >= c.At)
		if d.By, err = s.writer(path, is); err != nil {
			return nil, err
		}
		if d.Rescue, err = s.keep(ctx, path, was); err != nil {
			return nil, err
		}
		d.Beside = s.concerned(path, is)
		list = append(list, d)
		was.Found, was.Seen = &is, false
		s.rec.Files[path] = was
	}
	return list, nil
}

// keep puts the content that the session left at a path on the rescue shelf.
func (s *Session) keep(ctx context.Context, path string, was File) (string, error) {
	content := Copy(s.registry.app, was.Sum)
	if content == nil || !was.Own {
		return "", nil
	}
	e, err := s.shelve(ctx, rescue.Entry{Kind: rescue.Displaced, Path: path, GrantID: s.rec.GrantID, Holder: s.rec.Callsign, Mode: 0o644,
		Reason: "it was changed while " + s.rec.Callsign + " held it, maybe by a program that acquired no lock"}, content)
	return e.ID, err
}

// String says what happened, to the agent that is told first.
func (d Disturbance) String() string {
	text := fmt.Sprintf("DISTURBED %s, which you hold, was changed without a lock, by %s. Read it again before you continue.", d.Path, d.By)
	switch {
	case d.By.Sure && d.Gone:
		text = fmt.Sprintf("DISTURBED %s, which you hold, was removed without a lock, by %s.", d.Path, d.By)
	case d.By.Sure: // this applies even if a command of this session ran when the file changed
	case d.DuringCommand && d.Gone:
		text = fmt.Sprintf("CHANGED %s, which you hold, was removed while your command ran: by the command, or by another program.", d.Path)
	case d.DuringCommand:
		text = fmt.Sprintf("CHANGED %s, which you hold, changed while your command ran: by the command, or by another program. Read it again before you replace it.", d.Path)
	case d.Gone:
		text = fmt.Sprintf("DISTURBED %s, which you hold, was removed without a lock, by another program.", d.Path)
	}
	if d.Rescue != "" {
		text += " Your version is kept: lockkeeper rescue show " + d.Rescue + "."
	}
	return text
}

// NotifyBeside notifies the other agents of the session about a change of which the calling agent
// is told.
func (s *Session) NotifyBeside(d Disturbance) {
	text, then := "DISTURBED "+d.Path+", which this session holds, was changed", " Read it again before you continue."
	if d.Gone {
		text, then = "DISTURBED "+d.Path+", which this session holds, was removed", ""
	}
	if d.DuringCommand {
		caller := "the main agent"
		if kind := s.rec.Subagents[s.inner].Kind; s.inner != "" && kind != "" {
			caller = "another subagent (" + kind + ")"
		} else if s.inner != "" {
			caller = "another subagent"
		}
		text += " while a command of " + caller + " ran: by that command, or by another program"
	}
	text += "." + then
	if d.Rescue != "" {
		text += " The version before is kept: lockkeeper rescue show " + d.Rescue + "."
	}
	for _, who := range d.Beside {
		s.Notify(who, text)
	}
}
