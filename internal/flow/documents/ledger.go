package documents

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

type list struct {
	Lines []line `json:"entries"`
}

type ledger struct {
	p      *location
	disk   map[string][]line // the lines in the files
	wanted map[string][]line // the lines that the files should have
}

// ledger reads both files.
func (p *location) ledger(ctx context.Context) (*ledger, error) {
	l := &ledger{p: p, disk: map[string][]line{}, wanted: map[string][]line{}}
	var problems []error
	for _, kind := range kinds() {
		lines, err := p.list(ctx, kind)
		problems = append(problems, err)
		l.disk[kind] = lines
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	l.keepNewest()
	return l, nil
}

// list reads one file.
func (p *location) list(ctx context.Context, kind string) ([]line, error) {
	name := kind + ".json"
	lines, there, err := p.lines(ctx, kind, name)
	if bad, ok := errors.AsType[*MalformedError](err); ok {
		bad.Next = fmt.Sprintf("repair it, or replace it by %s, the version before the last change", p.folder.rel(previous(kind)))
		return nil, errors.Join(bad, p.copyAside(ctx, name))
	}
	if err != nil || there {
		return lines, err
	}
	before, _, err := p.lines(ctx, kind, previous(kind))
	if err != nil {
		return nil, err
	}
	if len(before) > 0 {
		return nil, &MalformedError{Path: p.folder.rel(name), Reason: fmt.Sprintf("missing; it had %d entries", len(before)),
			Next: fmt.Sprintf("restore it from %[1]s, or remove %[1]s too to forget these decisions", p.folder.rel(previous(kind)))}
	}
	return nil, nil
}

func previous(kind string) string { return kind + ".previous.json" }

func (p *location) lines(ctx context.Context, kind, name string) (lines []line, there bool, err error) {
	doc, err := p.document(ctx, name, func(body []byte) (err error) {
		lines, err = parseList(kind, body)
		return err
	})
	return lines, doc != nil, err
}

func parseList(kind string, body []byte) ([]line, error) {
	var l list
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return nil, err
	}
	if l.Lines == nil {
		return nil, errors.New(`it has no member "entries"`)
	}
	for i, e := range l.Lines {
		problem := e.problem()
		if problem == "" && e.Decision != kind {
			problem = fmt.Sprintf("its decision is %q, but the file is for items that are %s", e.Decision, kind)
		}
		if problem != "" {
			return nil, fmt.Errorf("entry %d: %s", i+1, problem)
		}
	}
	return l.Lines, nil
}

// copyAside keeps a copy of a malformed file, one for each content.
func (p *location) copyAside(ctx context.Context, name string) error {
	data, _, err := p.read(ctx, name)
	if _, ok := errors.AsType[*MalformedError](err); ok {
		return nil // a link or a directory has no content to copy
	}
	if err != nil {
		return err
	}
	copied := fmt.Sprintf("%s.malformed-%.6x", name, sha256.Sum256(data))
	if _, err := p.root.Lstat(copied); err == nil {
		return nil
	}
	return p.write(ctx, copied, data)
}

// keepNewest keeps the newest line of each item. An item has several after a crash between two
// writes, or after edits by hand.
func (l *ledger) keepNewest() {
	newest := map[item]line{}
	for _, kind := range kinds() {
		for _, e := range l.disk[kind] {
			if best, met := newest[e.item]; !met || e.Timestamp.After(best.Timestamp) {
				newest[e.item] = e
			}
		}
	}
	for _, kind := range kinds() {
		for _, e := range l.disk[kind] {
			if best, left := newest[e.item]; left && best.same(e) {
				l.wanted[kind] = append(l.wanted[kind], e)
				delete(newest, e.item)
			}
		}
	}
}

func (l *ledger) find(it item) (kind string, i int, found bool) {
	for _, kind := range kinds() {
		if i := slices.IndexFunc(l.wanted[kind], func(e line) bool { return e.item == it }); i >= 0 {
			return kind, i, true
		}
	}
	return "", 0, false
}

// set replaces the line of an item, or appends it.
func (l *ledger) set(e line) {
	kind, i, found := l.find(e.item)
	if found && kind == e.Decision {
		l.wanted[kind][i] = e
		return
	}
	if found {
		l.wanted[kind] = slices.Delete(l.wanted[kind], i, i+1)
	}
	l.wanted[e.Decision] = append(l.wanted[e.Decision], e)
}

// save writes the changes: first the new lines, then the files without the removed lines. So an
// item that moves is in both files for a moment, and is never missing.
func (l *ledger) save(ctx context.Context, about About) error {
	for _, kind := range kinds() {
		if all, news := l.grown(kind); news {
			if err := l.write(ctx, kind, all, about); err != nil {
				return err
			}
		}
	}
	for _, kind := range kinds() {
		if err := l.write(ctx, kind, l.wanted[kind], about); err != nil {
			return err
		}
	}
	return nil
}

// grown returns the wanted lines of a file with the lines that will be removed from it. News
// reports whether any line is not in the file yet.
func (l *ledger) grown(kind string) (all []line, news bool) {
	all = slices.Clone(l.wanted[kind])
	stays, there := map[item]bool{}, map[string]bool{}
	for _, e := range l.wanted[kind] {
		stays[e.item] = true
	}
	for _, e := range l.disk[kind] {
		there[string(e.text)] = true
		if !stays[e.item] {
			all = append(all, e)
		}
	}
	return all, slices.ContainsFunc(l.wanted[kind], func(e line) bool { return !there[string(e.text)] })
}

// write replaces one file unless it has these lines, and keeps its previous version.
func (l *ledger) write(ctx context.Context, kind string, lines []line, about About) error {
	if slices.EqualFunc(lines, l.disk[kind], line.same) {
		return nil
	}
	text, _, err := compose(list{Lines: append([]line{}, lines...)}, about) // an empty list is [] and never null
	if err != nil {
		return err
	}
	name := kind + ".json"
	old, _, err := l.p.read(ctx, name)
	if err == nil {
		err = l.p.write(ctx, previous(kind), old)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := l.p.write(ctx, name, text); err != nil {
		return err
	}
	l.disk[kind] = slices.Clone(lines)
	return nil
}
