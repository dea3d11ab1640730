package lsp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/refusal"
	"lockkeeper/internal/surface/view"
)

// An act is a command that the editor offers for a document.
type act struct {
	name  string
	title string
	offer func(*document) bool
	do    func(*Server, context.Context, *document) error
}

const titleAsk = "Ask the holder to finish this file"

// acts lists the commands in the order in which editors show them.
func acts() []act {
	return []act{
		{"lockkeeper.claim", "Claim this file", func(d *document) bool { return !d.own && len(d.holders) == 0 }, (*Server).claim},
		{"lockkeeper.ask", titleAsk, func(d *document) bool { return len(d.holders) > 0 }, (*Server).ask},
		{"lockkeeper.release", "Release this file", func(d *document) bool { return d.own }, (*Server).release},
		{"lockkeeper.why", "Show why this file is held or free", func(*document) bool { return true }, (*Server).why},
	}
}

func commandNames() (names []string) {
	for _, a := range acts() {
		names = append(names, a.name)
	}
	return names
}

// actions lists the acts that a document allows now.
func (s *Server) actions(p documentParams) []codeAction {
	list := []codeAction{}
	d := s.documents[p.TextDocument.URI]
	wanted := p.Context.Only == nil || slices.ContainsFunc(p.Context.Only, func(kind string) bool { return kind == quickFix || kind == "" })
	if d == nil || d.root == nil || !wanted {
		return list
	}
	for _, a := range acts() {
		if a.offer(d) {
			list = append(list, codeAction{Title: a.title, Kind: quickFix, Diagnostics: d.diagnostics(),
				Command: command{Title: a.title, Command: a.name, Arguments: []string{d.uri}}})
		}
	}
	return list
}

// execute runs an act. It shows a failure as a message, because editors hide the errors of
// requests.
func (s *Server) execute(ctx context.Context, p commandParams) error {
	i := slices.IndexFunc(acts(), func(a act) bool { return a.name == p.Command })
	if i < 0 || len(p.Arguments) != 1 {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown command, or not one URI: " + p.Command}
	}
	d := s.documents[p.Arguments[0]]
	if d == nil || d.root == nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "not an open file of a codebase with locks"}
	}
	doing, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	if err := acts()[i].do(s, doing, d); err != nil {
		return s.show(messageError, lockkeeper.LocalTimes(lockkeeper.Message(err)))
	}
	return nil
}

// typed returns the path of a document as a person would type it, so that it is not taken for
// a named resource.
func (d *document) typed() string { return "./" + d.path }

func (s *Server) claim(ctx context.Context, d *document) error {
	au, err := author.Open(d.root.app, s.opt.Env)
	if err != nil {
		return err
	}
	result, err := au.Claim(ctx, author.Request{By: s.opt.Claimant, Names: []string{d.typed()}, Mode: lockkeeper.Write, Reason: "open in an editor", Person: s.opt.Person})
	if err != nil {
		return err
	}
	d.claimed = d.claimed || result.Grant != nil
	text := d.name() + " is claimed by you until you release it, close it, or end the editor"
	if !d.claimed {
		text = d.name() + " was already claimed by you"
	}
	kind := messageInfo
	if len(result.Conflicts) > 0 {
		kind, text = messageWarning, fmt.Sprintf("%s was not claimed: %s holds it", d.name(), refusal.Line(result.Conflicts[0].Instance))
	}
	if err := s.show(kind, text); err != nil {
		return err
	}
	return s.refresh(ctx, d.root)
}

func (s *Server) release(ctx context.Context, d *document) error {
	au, err := author.Open(d.root.app, s.opt.Env)
	if err != nil {
		return err
	}
	done, err := au.Unclaim(ctx, s.opt.Claimant, []string{d.typed()})
	if err != nil {
		return err
	}
	kind, text := messageInfo, d.name()+" is released"
	if len(done.Freed) == 0 {
		kind, text = messageWarning, d.name()+" was not released: another claim covers it; next: lockkeeper claim status"
	}
	d.claimed = false
	if err := s.show(kind, text); err != nil {
		return err
	}
	return s.refresh(ctx, d.root)
}

// releaseClaim releases the claim of a document if the server made it.
func (s *Server) releaseClaim(ctx context.Context, d *document) error {
	if d.root == nil || !d.claimed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	au, err := author.Open(d.root.app, s.opt.Env)
	if err != nil {
		return err
	}
	_, err = au.Unclaim(ctx, s.opt.Claimant, []string{d.typed()})
	return err
}

func (s *Server) ask(ctx context.Context, d *document) error {
	if len(d.holders) == 0 {
		return s.show(messageInfo, d.name()+" is free")
	}
	for _, h := range d.holders {
		told, err := d.root.sessions.Ask(ctx, h.grant, d.path, s.opt.Person)
		if err != nil {
			return err
		}
		text := "asked; the holder is told at its next call, and you are told when the file is free"
		if !told {
			text = "the request is in lockkeeper audit and shown in the holder's editor; if a program holds the file, nobody reads it"
		}
		if err := s.show(messageInfo, fmt.Sprintf("%s is %s: %s", d.name(), h.text, text)); err != nil {
			return err
		}
	}
	return nil
}

// asked shows the request of another person for a file that this person holds.
func (s *Server) asked(r *root, ev lockkeeper.Event) error {
	if ev.Kind != lockkeeper.EventAsked || ev.Holder != s.opt.Claimant.ID || len(ev.Locks) == 0 {
		return nil
	}
	for _, d := range s.documents {
		if d.root == r && d.own && d.path == ev.Locks[0].Path {
			return s.show(messageInfo, fmt.Sprintf("%s waits for %s, which you hold; next: finish it, then release it", refusal.Line(ev.Actor.Name), d.name()))
		}
	}
	return nil
}

// saveTime is how long after a save a change on the disk may be that save, or a formatter that it ran.
const saveTime = 10 * time.Second

// heldChange shows that another program may have changed a file that this person holds.
func (s *Server) heldChange(r *root, c session.HeldChange) error {
	for _, d := range s.documents {
		if d.root != r || !d.own || d.path != c.Path {
			continue
		}
		if c.Doubt != "" && s.opt.Now().Sub(d.saved) < saveTime {
			return nil
		}
		return s.show(messageWarning, c.String())
	}
	return nil
}

const eventsShown = 5

// why shows who holds a file, who waits for it, and its recent events.
func (s *Server) why(ctx context.Context, d *document) error {
	target := lockkeeper.Target{Path: d.path, Kind: lockkeeper.File}
	var lines []string
	for _, h := range d.holders {
		lines = append(lines, d.name()+" is "+h.text)
	}
	if d.own {
		lines = append(lines, d.name()+" is claimed by you")
	}
	if len(lines) == 0 {
		lines = append(lines, d.name()+" is free")
	}
	found, err := d.root.app.Locks.CheckConflicts(ctx, []lockkeeper.Lock{{Target: target, Mode: lockkeeper.Write}})
	if err != nil {
		return err
	}
	for _, c := range found {
		if c.Kind == lockkeeper.Waiting {
			lines = append(lines, refusal.Line(c.Holder)+" waits for it since "+session.Clock(c.AcquiredAt.Local(), s.opt.Now()))
		}
	}
	events, err := view.New(d.root.app).Recent(ctx, eventsShown, 0, func(ev lockkeeper.Event) bool { return view.Concerns(ev, target) })
	if err != nil {
		return err
	}
	for _, ev := range events {
		line := session.Clock(ev.At.Local(), s.opt.Now()) + " " + ev.What + " " + ev.Holder
		if ev.Reason != "" {
			line += ": " + ev.Reason
		}
		lines = append(lines, refusal.Line(line))
	}
	return s.show(messageInfo, strings.Join(lines, "\n"))
}
