package lsp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/session"
	"lockkeeper/internal/session/refusal"
)

// A document is an open file.
type document struct {
	uri     string
	file    string // absolute
	root    *root  // nil: the document belongs to no codebase
	path    string // path from the root
	edited  bool   // edited since the document was opened or saved
	saved   time.Time
	holders []holder
	own     bool            // the person holds the file
	claimed bool            // this server claimed the file, and releases it
	warned  map[string]bool // grants about which an edit warned
}

// A holder holds an open file, and is not the person.
type holder struct {
	grant string
	text  string // "held by …"
}

// fileOf returns the file of a URI. Other documents have none: unsaved buffers, files in
// archives or on other machines.
func fileOf(uri string) (file string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	if !filepath.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0) {
		return "", false
	}
	return filepath.Clean(u.Path), true
}

func (s *Server) opened(ctx context.Context, uri string) error {
	file, ok := fileOf(uri)
	if !ok || s.documents[uri] != nil {
		return nil
	}
	d := &document{uri: uri, file: file, warned: map[string]bool{}}
	s.documents[uri] = d
	return s.placeAndShow(ctx, d)
}

// saved finds the codebase again, because the file may have been new.
func (s *Server) saved(ctx context.Context, uri string) error {
	d := s.documents[uri]
	if d == nil {
		return nil
	}
	d.edited, d.saved = false, s.opt.Now()
	clear(s.failed)
	return s.placeAndShow(ctx, d)
}

func (s *Server) placeAndShow(ctx context.Context, d *document) error {
	if err := s.place(ctx, d); err != nil || d.root == nil {
		return err
	}
	return s.refresh(ctx, d.root)
}

func (s *Server) changed(uri string) error {
	d := s.documents[uri]
	if d == nil {
		return nil
	}
	d.edited = true
	return s.warn(d)
}

func (s *Server) closed(ctx context.Context, uri string) error {
	d := s.documents[uri]
	if d == nil {
		return nil
	}
	err := s.logged(d.file, s.releaseClaim(ctx, d))
	delete(s.documents, uri)
	return errors.Join(err, s.publish(uri, nil), s.leave(d.root))
}

// place finds the codebase of a document, which can appear, move and vanish while the document is
// open. A document that cannot be placed belongs to none.
func (s *Server) place(ctx context.Context, d *document) error {
	was := d.root
	r, err := s.rootOf(ctx, d.file)
	if err == nil && r != nil {
		d.path, err = r.sessions.Path(d.file)
	}
	if d.root = r; err != nil {
		d.root = nil
		err = s.log(d.file, err)
	} else {
		delete(s.told, d.file)
	}
	if r != d.root {
		err = errors.Join(err, s.leave(r))
	}
	if was == nil || was == d.root {
		return err
	}
	d.holders, d.own, d.claimed = nil, false, false
	return errors.Join(err, s.publish(d.uri, nil), s.leave(was))
}

// refresh reads who holds the open files of a codebase, and shows what changed.
func (s *Server) refresh(ctx context.Context, r *root) error {
	reading, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	held, err := s.read(reading, r)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return s.drop(r, err)
	}
	delete(s.told, r.dir)
	for _, d := range s.documents {
		if d.root != r {
			continue
		}
		if err := s.update(d, held[d.path]); err != nil {
			return err
		}
	}
	return nil
}

// state is who holds one file.
type state struct {
	holders []holder
	own     bool
}

// read returns who holds the open files of a codebase, by path. A lock whose process ended is not
// held: the next request frees it.
func (s *Server) read(ctx context.Context, r *root) (map[string]state, error) {
	var locks []lockkeeper.Lock
	for _, d := range s.documents {
		l := lockkeeper.Lock{Target: lockkeeper.Target{Path: d.path, Kind: lockkeeper.File}, Mode: lockkeeper.Write}
		if d.root == r && !slices.Contains(locks, l) {
			locks = append(locks, l)
		}
	}
	held := map[string]state{}
	if len(locks) == 0 {
		return held, nil
	}
	found, err := r.app.Locks.CheckConflicts(ctx, locks)
	if err != nil {
		return nil, err
	}
	slices.Reverse(found) // the earliest comes first
	for _, c := range found {
		if c.Kind == lockkeeper.Waiting {
			continue
		}
		if err := s.addHolder(ctx, r, held, c); err != nil {
			return nil, err
		}
	}
	return held, nil
}

func (s *Server) addHolder(ctx context.Context, r *root, held map[string]state, c lockkeeper.ConflictInfo) error {
	e, err := r.app.Locks.Request(ctx, c.GrantID)
	if err != nil || e == nil || e.Free {
		return err
	}
	of := held[c.Path]
	status := author.StatusOf(r.app, *e, s.opt.Now())
	if s.opt.Claimant.Has(status) {
		of.own = true
	} else if !slices.ContainsFunc(of.holders, func(h holder) bool { return h.grant == c.GrantID }) {
		who, err := r.sessions.Who(ctx, c)
		if err != nil {
			return err
		}
		of.holders = append(of.holders, holderOf(c, who, status, session.Clock(c.AcquiredAt.Local(), s.opt.Now())))
	}
	held[c.Path] = of
	return nil
}

func holderOf(c lockkeeper.ConflictInfo, who refusal.Holder, status author.GrantStatus, since string) holder {
	if status.Who != "" {
		who.Callsign += " of " + status.Who
	}
	h := holder{grant: c.GrantID, text: who.Since(since)}
	if c.BlockingMode != lockkeeper.Write {
		h.text += ", for reading"
	}
	if status.MayOverride() {
		h.text += "; its process is gone"
	}
	return h
}

// update shows what changed about a document.
func (s *Server) update(d *document, now state) error {
	before := d.holders
	d.holders, d.own = now.holders, now.own
	if !now.own {
		d.claimed = false
	}
	if !slices.Equal(before, now.holders) {
		if err := s.publish(d.uri, d.diagnostics()); err != nil {
			return err
		}
	}
	if len(before) > 0 && len(now.holders) == 0 {
		clear(d.warned)
		return s.show(messageInfo, d.name()+" is free")
	}
	if d.edited {
		return s.warn(d)
	}
	return nil
}

// warn warns once about each holder of a document that was edited.
func (s *Server) warn(d *document) error {
	for _, h := range d.holders {
		if d.warned[h.grant] {
			continue
		}
		d.warned[h.grant] = true
		text := fmt.Sprintf("%s is %s: saving your edit would disturb that work; next: the code action %q, or close the file without saving", d.name(), h.text, titleAsk)
		if err := s.show(messageWarning, text); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) name() string { return refusal.Line(d.path) }

// diagnostics describes the holders of a document, at its first line.
func (d *document) diagnostics() (list []diagnostic) {
	for _, h := range d.holders {
		list = append(list, diagnostic{Severity: severityWarning, Code: "held", Source: source, Message: d.name() + " is " + h.text})
	}
	return list
}

func (s *Server) publish(uri string, list []diagnostic) error {
	if list == nil {
		list = []diagnostic{}
	}
	return s.conn.notify("textDocument/publishDiagnostics", publishParams{URI: uri, Diagnostics: list})
}
