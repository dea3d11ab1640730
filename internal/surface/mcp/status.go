package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/deferred"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/internal/surface/view"
)

// mostShown is the maximum length of a list in an answer.
const mostShown = 100

// An overview lists the sessions, the held locks, the waiting requests and the deferred changes.
type overview struct {
	answer
	You      peer         `json:"you"`
	Sessions []peer       `json:"sessions,omitempty" jsonschema:"other sessions"`
	Held     []holding    `json:"held,omitempty" jsonschema:"who holds what, you included"`
	Waiting  []holding    `json:"waiting,omitempty" jsonschema:"who waits for what"`
	LeftOut  int          `json:"left_out,omitempty" jsonschema:"how many more there are"`
	Deferred []waitingFor `json:"deferred,omitempty" jsonschema:"changes that wait for their file"`
	Off      string       `json:"off,omitempty" jsonschema:"who disabled the checks, and until when"`
}

// A peer is a session as others see it.
type peer struct {
	Callsign string    `json:"callsign"`
	Agent    string    `json:"agent"`
	TTY      string    `json:"tty,omitempty"`
	About    string    `json:"about,omitempty"`
	Began    time.Time `json:"began"`
	Seen     time.Time `json:"seen"`
	Holds    []string  `json:"holds,omitempty"`
}

// holding is a held or requested lock.
type holding struct {
	Holder string    `json:"holder"`
	About  string    `json:"about,omitempty"`
	Write  []string  `json:"write,omitempty"`
	Read   []string  `json:"read,omitempty"`
	Since  time.Time `json:"since"`
	You    bool      `json:"you,omitempty"`
	Gone   bool      `json:"gone,omitempty" jsonschema:"its process is gone, so its files are free"`
}

type waitingFor struct {
	ID   string    `json:"id"`
	Path string    `json:"path"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
}

func peerOf(s session.Info) peer {
	return peer{Callsign: s.Callsign, Agent: s.Agent, TTY: s.TTY, About: s.About, Began: s.Began, Seen: s.Seen}
}

func status(ctx context.Context, v *call, _ nothing) (out overview, err error) {
	err = v.within(ctx, "", func(sess *session.Session) (err error) {
		out.You = peerOf(sess.Info())
		out.You.Holds, err = sess.Holds(ctx)
		return err
	})
	if err != nil {
		return out, err
	}
	live, err := v.registry.Live(ctx)
	if err != nil {
		return out, err
	}
	for _, s := range live {
		if s.Callsign != out.You.Callsign {
			out.Sessions = append(out.Sessions, peerOf(s))
		}
	}
	if err := out.addHeld(ctx, v); err != nil {
		return out, err
	}
	patches, err := v.later.List()
	for _, p := range patches {
		if p.State == deferred.Queued {
			out.Deferred = append(out.Deferred, waitingFor{ID: p.ID, Path: p.Path, By: p.By, At: p.At})
		}
	}
	if err != nil {
		return out, err
	}
	off, err := v.registry.Off(ctx)
	if off != nil {
		out.Off = fmt.Sprintf("checks of sessions are disabled by %s until %s", off.By, off.Until.UTC().Format(time.RFC3339))
	}
	out.Sessions, out.Deferred = first(out.Sessions), first(out.Deferred)
	return out, err
}

func first[T any](list []T) []T { return list[:min(len(list), mostShown)] }

// addHeld adds the holders and the waiting requests.
func (s *overview) addHeld(ctx context.Context, v *call) error {
	entries, err := v.app.Locks.Requests(ctx)
	for _, e := range entries {
		h := holding{Holder: e.Holder, About: e.Metadata["reason"], Write: e.WritePaths, Read: append(e.ReadPaths, e.UpgradeablePaths...),
			Since: e.AcquiredAt, You: e.ID == v.info.GrantID}
		list := &s.Held
		if e.State == string(lockkeeper.Waiting) {
			list = &s.Waiting
		} else {
			h.Gone = e.Free
		}
		if len(*list) == mostShown && !h.You {
			s.LeftOut++
			continue
		}
		*list = append(*list, h)
	}
	return err
}

func (s *overview) text() string {
	lines := []string{fmt.Sprintf("You are %s and hold %s.", s.You.Callsign, listed(s.You.Holds))}
	if s.Off != "" {
		lines = append(lines, "NOTE: "+s.Off+".")
	}
	for _, h := range s.Held {
		switch {
		case h.Gone:
			lines = append(lines, h.line("has ended and no longer locks"))
		case !h.You:
			lines = append(lines, h.line("holds"))
		}
	}
	for _, h := range s.Waiting {
		lines = append(lines, h.line("waits for"))
	}
	if s.LeftOut > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", s.LeftOut))
	}
	for _, d := range s.Deferred {
		lines = append(lines, fmt.Sprintf("deferred: %s by %s", shown(d.Path), shown(d.By)))
	}
	if len(lines) == 1 {
		lines = append(lines, "No one else holds a lock.")
	}
	return strings.Join(lines, "\n")
}

func (h holding) line(verb string) string {
	text := fmt.Sprintf("%s %s %s", shown(h.Holder), verb, listed(slices.Concat(h.Write, h.Read)))
	if h.About != "" {
		text += fmt.Sprintf(" %q", h.About)
	}
	return text + ", " + refusal.Span(time.Since(h.Since))
}

type whyInput struct {
	Path string `json:"path" jsonschema:"the file, from the root of the codebase or absolute"`
}

// reasons lists the holders of a file, the queued items that need it, and its recent events.
type reasons struct {
	answer
	Path   string            `json:"path,omitempty"`
	Yours  bool              `json:"yours" jsonschema:"this session holds it"`
	By     []session.Blocker `json:"by,omitempty" jsonschema:"who holds it or requested it earlier"`
	Queued []queuedItem      `json:"queued,omitempty" jsonschema:"queued items that need it"`
	Events []string          `json:"events,omitempty" jsonschema:"recent events, newest first"`
}

type queuedItem struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
}

// eventsShown is how many events why returns.
const eventsShown = 8

func why(ctx context.Context, v *call, in whyInput) (out reasons, err error) {
	if out.Path, err = v.registry.Path(v.at(in.Path)); err != nil {
		return out, err
	}
	err = v.within(ctx, "", func(sess *session.Session) error {
		holds, err := sess.Holds(ctx)
		if err != nil {
			return err
		}
		out.Yours = slices.Contains(holds, out.Path)
		out.By, err = sess.Blockers(ctx, out.Path)
		return err
	})
	if err != nil {
		return out, err
	}
	q, err := job.Open(v.app)
	if err != nil {
		return out, err
	}
	wanting, err := q.QueuedFor(ctx, out.Path)
	if err != nil {
		return out, err
	}
	for _, it := range first(wanting) {
		out.Queued = append(out.Queued, queuedItem{it.ID, it.Workflow, string(it.Status)})
	}
	events, err := v.view.Audit(ctx, view.AuditQuery{Path: v.at(out.Path), Limit: eventsShown})
	if err != nil {
		return out, err
	}
	for _, l := range events.Lines {
		out.Events = append(out.Events, l.At.UTC().Format(time.RFC3339)+" "+l.Text)
	}
	return out, nil
}

func (r *reasons) text() string {
	var lines []string
	path := shown(r.Path)
	switch {
	case r.Yours:
		lines = append(lines, path+" is yours.")
	case len(r.By) == 0:
		lines = append(lines, path+" is free.")
	}
	for _, o := range r.By {
		lines = append(lines, path+": "+o.Holder.String())
	}
	for _, it := range r.Queued {
		lines = append(lines, fmt.Sprintf("queued: %s (%s) needs it", it.ID, shown(it.Name)))
	}
	if len(r.Events) > 0 {
		lines = append(lines, "recent events:")
	}
	for _, e := range r.Events {
		lines = append(lines, "  "+shown(e))
	}
	return strings.Join(lines, "\n")
}
