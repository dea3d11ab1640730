package api

import (
	"context"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/view"
)

func treeRoutes() []route {
	return []route{
		act(api+"/write", writers, "Write files under a grant, through the gate. Refused changes are kept and reported; with whole, all changes land or none.", write).withLargeBody(),
		act(api+"/replace-dir", writers, "Replace a directory as a whole with a copy of another one in the codebase, under a grant that holds the directory above it.", replaceDir),
		ask(api+"/landings", viewers, "Landings, the newest first.", listLandings),
		ask(api+"/landings/{landing}", viewers, "A landing with its diff, the tests of its batch, and later landings of its files.", func(s *Server, c *call, _ nothing) (*view.LandingDetail, error) {
			seq, err := landingIn(c)
			if err != nil {
				return nil, err
			}
			landing, err := s.opt.View.Landing(c.r.Context(), seq)
			return landing, unknownName(err)
		}),
		act(api+"/landings/{landing}/undo", writers, "Undo a landing. An agent undoes only its own.", undoLanding),
		ask(api+"/rescue", viewers, "Rescued changes, which could not land, the newest first.", listRescued),
		ask(api+"/rescue/{id}", viewers, "One rescued change, with its diff.", func(s *Server, c *call, _ nothing) (*view.RescueDetail, error) {
			return s.opt.View.Rescued(c.r.Context(), c.r.PathValue("id"))
		}),
		act(api+"/rescue/{id}/drop", operators, "Drop a rescued change for good. confirm is its id.", dropRescued),
		act(api+"/rescue/{id}/land", writers, "Land a rescued change, merged into the file as it is now. An agent lands only its own.", landRescued),
		act(api+"/rescue/land", writers, "Land the rescued changes that are chosen and apply. Others stay.", landMany),
		act(api+"/rescue/drop", operators, "Drop the rescued changes that are chosen for good. confirm is their number.", dropMany),
	}
}

type wantedChange struct {
	Path    string  `json:"path"`              // path from the root
	Text    *string `json:"text,omitempty"`    // the new content; without it and content, the content stays
	Content []byte  `json:"content,omitempty"` // the new content in base64, for binary files
	Delete  bool    `json:"delete,omitempty"`
	Mode    string  `json:"mode,omitempty"` // mode in octal, such as 0644
	Base    string  `json:"base,omitempty"` // the expected current state: nothing, a version, or the SHA-256 of the content
}

// writing is a request to write changes under a grant.
type writing struct {
	Grant   string         `json:"grant"`
	Token   string         `json:"token"`
	Whole   bool           `json:"whole,omitempty"` // land all of them or none
	Changes []wantedChange `json:"changes"`
}

type written struct {
	Landing uint64        `json:"landing,omitempty"` // 0: nothing landed
	Files   []writtenFile `json:"files"`
}

type writtenFile struct {
	Path    string         `json:"path"`
	Landed  bool           `json:"landed"` // false without a refusal: the file was already in that state
	Version string         `json:"version,omitempty"`
	Refused map[string]any `json:"refused,omitempty"`
}

func write(s *Server, c *call, in writing) (written, error) {
	grant, err := s.opt.App.GrantID(c.r.Context(), in.Grant)
	if err != nil {
		return written{}, err
	}
	if len(in.Changes) == 0 {
		return written{}, &lockkeeper.InputError{Field: "changes", Reason: "required", Next: "name at least one file"}
	}
	changes := make([]gate.Change, len(in.Changes))
	for i, w := range in.Changes {
		if changes[i], err = w.change(s.opt.App); err != nil {
			return written{}, err
		}
	}
	done, err := landing.ApplyUnder(c.r.Context(), s.opt.App, &lockkeeper.Grant{ID: grant, Token: in.Token}, changes, in.Whole)
	if err != nil {
		return written{}, err
	}
	out := written{Files: []writtenFile{}}
	if done.Landing != nil {
		out.Landing = done.Landing.Seq
	}
	var refused []error
	for _, o := range done.Files {
		f := writtenFile{Path: o.Path, Landed: o.Landed}
		if o.Landed {
			f.Version = o.Version.String()
		}
		if o.Refusal != nil {
			f.Refused = factsOf(o.Refusal)
			refused = append(refused, o.Refusal)
		}
		out.Files = append(out.Files, f)
	}
	if len(refused) == len(done.Files) {
		return out, &partsRefused{refused}
	}
	return out, nil
}

func (w wantedChange) change(a *project.Project) (ch gate.Change, err error) {
	at, err := a.Root.Resolve(a.Root.Dir(), w.Path, lockkeeper.Write)
	if err != nil {
		return ch, err
	}
	ch = gate.Change{Path: at.Path, Delete: w.Delete}
	switch {
	case w.Text != nil && w.Content != nil, w.Delete && (w.Text != nil || w.Content != nil):
		return ch, &lockkeeper.InputError{Field: "changes", Value: w.Path, Reason: "text, content and delete exclude each other", Next: "give one of text, content and delete"}
	case w.Text != nil:
		ch.Body = gate.Bytes([]byte(*w.Text))
	case w.Content != nil:
		ch.Body = gate.Bytes(w.Content)
	}
	if w.Mode != "" {
		bits, err := strconv.ParseUint(w.Mode, 8, 9)
		if err != nil {
			return ch, &lockkeeper.InputError{Field: "mode", Value: w.Mode, Reason: "not permissions in octal", Next: "write them like 0644"}
		}
		mode := fs.FileMode(bits)
		ch.Mode = &mode
	}
	if w.Base != "" {
		ch.Base, err = landing.ParseBase(a, at.Path, w.Base)
	}
	return ch, err
}

// replacing is a request to replace a directory under a grant.
type replacing struct {
	Grant string `json:"grant"`
	Token string `json:"token"`
	Dir   string `json:"dir"`  // directory from the root
	From  string `json:"from"` // the directory with the new content, from the root; it stays
}

type replaced struct {
	Path    string              `json:"path"`
	Landing *lockkeeper.Landing `json:"landing"` // null: the directory had that content already
}

func replaceDir(s *Server, c *call, in replacing) (out replaced, err error) {
	grant, err := s.opt.App.GrantID(c.r.Context(), in.Grant)
	if err != nil {
		return out, err
	}
	from := ""
	if out.Path, from, err = acts.Replacement(s.opt.App, in.Dir, in.From); err != nil {
		return out, err
	}
	out.Landing, err = landing.ReplaceDir(c.r.Context(), s.opt.App, &lockkeeper.Grant{ID: grant, Token: in.Token}, out.Path, from)
	return out, err
}

func listLandings(s *Server, c *call, q struct {
	paged
	After uint64 `json:"after" doc:"The field next of the previous page."`
	Path  string `json:"path"`
}) (*view.Landings, error) {
	return s.opt.View.Landings(c.r.Context(), view.LandingsQuery{Before: q.After, Limit: *q.Limit, Path: q.Path})
}

// landingIn returns the number of the landing in the URL.
func landingIn(c *call) (uint64, error) {
	seq, err := strconv.ParseUint(c.r.PathValue("landing"), 10, 63)
	if err != nil || seq == 0 {
		return 0, &refusal{code: codeNotFound, reason: "landings have numbers", next: "GET " + api + "/landings lists them all"}
	}
	return seq, nil
}

func undoLanding(s *Server, c *call, _ nothing) (*acts.Undone, error) {
	seq, err := landingIn(c)
	if err != nil {
		return nil, err
	}
	return acts.UndoLanding(c.r.Context(), s.opt.App, seq, c.changer(), acts.Holding(s.opt.App, c.who.Actor()))
}

// changer returns the caller for acts on landings and rescued changes. The holder of a grant that an
// account acquires is its name, or its name, a slash and one word.
func (c *call) changer() acts.Changer {
	return acts.Changer{Actor: c.who.Actor(), Wrote: func(_ context.Context, _, holder string, _ time.Time) (bool, error) {
		account, word, _ := strings.Cut(holder, "/")
		return account == c.who.Name && !strings.Contains(word, "/"), nil
	}}
}
