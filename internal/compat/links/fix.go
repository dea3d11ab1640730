package links

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/parser"

	"lockkeeper"
)

// A Fix is a new target for a reference whose file has moved.
type Fix struct {
	Reference
	New string `json:"new"` // the new target
	To  string `json:"to"`  // the file that the fixed link refers to, from the root

	start, end int
}

// fix returns the fix for a reference, or nil if it is ambiguous.
func (r *reference) fix() *Fix {
	if r.problem != Missing || r.moved == "" {
		return nil
	}
	to := r.moved
	switch {
	case r.Kind == Code || r.Kind == Mention:
		to += r.to.rest
	case strings.HasPrefix(r.to.path, "/"):
		to = encoded("/"+to) + r.to.rest
	default:
		to = encoded(relativePath(r.File, to, strings.HasPrefix(r.to.path, "./"))) + r.to.rest
	}
	return &Fix{Reference: r.Reference, New: to, To: r.moved, start: r.start, end: r.end}
}

func relativePath(document, name string, dotted bool) string {
	seen, err := filepath.Rel(filepath.FromSlash(path.Dir(document)), filepath.FromSlash(name))
	if err != nil { // cannot happen: both paths are relative to the root
		return "/" + name
	}
	seen = filepath.ToSlash(seen)
	if dotted && !strings.HasPrefix(seen, "../") {
		seen = "./" + seen
	}
	return seen
}

// encoded returns a path for use in a link, with special characters percent-encoded.
func encoded(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c <= ' ' || c == 0x7f || strings.IndexByte("()<>[]\"'`\\%#?&", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// A Rewrite is a document with its fixes applied.
type Rewrite struct {
	Path    string
	Base    lockkeeper.Version // the version of the file that the fix changes
	Content []byte
	Fixes   []Fix
}

// Rewrites applies fixes to their documents in memory. It refuses a document that has
// changed since the check, and skips a fix that would change more than its target.
func Rewrites(ctx context.Context, dir string, fixes []Fix) (_ []Rewrite, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	w := &rewriter{files: &files{root: root}, parser: newParser()}
	var list []Rewrite
	for len(fixes) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := slices.IndexFunc(fixes, func(f Fix) bool { return f.File != fixes[0].File })
		if n < 0 {
			n = len(fixes)
		}
		rewrite, err := w.document(fixes[:n])
		if err != nil {
			return nil, err
		}
		if len(rewrite.Fixes) > 0 {
			list = append(list, *rewrite)
		}
		fixes = fixes[n:]
	}
	return list, nil
}

type rewriter struct {
	files  *files
	parser parser.Parser
}

// document applies the fixes of one document, except fixes that would change anything
// else.
func (w *rewriter) document(fixes []Fix) (*Rewrite, error) {
	name := fixes[0].File
	source, err := w.files.read(name)
	if err != nil {
		return nil, err
	}
	info, err := w.files.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	before := parse(w.parser, name, source).references
	for _, f := range fixes {
		if !slices.ContainsFunc(before, f.matches) {
			return nil, &lockkeeper.RefusedError{Act: "fix of links in " + name, Reason: "it was changed since it was checked", Next: "check it again"}
		}
	}
	content, ok := w.with(source, before, fixes)
	if !ok { // apply the fixes that are valid alone
		fixes = slices.DeleteFunc(slices.Clone(fixes), func(f Fix) bool {
			_, alone := w.with(source, before, []Fix{f})
			return !alone
		})
		if content, ok = w.with(source, before, fixes); !ok {
			fixes = nil
		}
	}
	base := lockkeeper.Version{Kind: lockkeeper.File, Mode: info.Mode().Perm(), Sum: sha256.Sum256(source)}
	return &Rewrite{Path: name, Base: base, Content: content, Fixes: fixes}, nil
}

func (f Fix) matches(r reference) bool {
	return r.start == f.start && r.end == f.end && r.Kind == f.Kind && r.Target == f.Target
}

// with applies fixes to a document. ok is false if any other reference would change, or a
// fixed one would not refer to its file.
func (w *rewriter) with(source []byte, before []reference, fixes []Fix) (content []byte, ok bool) {
	last := 0
	for _, f := range fixes {
		content = append(append(content, source[last:f.start]...), f.New...)
		last = f.end
	}
	content = append(content, source[last:]...)
	now := parse(w.parser, before[0].File, content).references
	if len(now) != len(before) {
		return nil, false
	}
	for i, r := range now {
		if r.Kind != before[i].Kind || r.Line != before[i].Line {
			return nil, false
		}
		fixed := slices.IndexFunc(fixes, func(f Fix) bool { return f.matches(before[i]) })
		if fixed < 0 && r.Target != before[i].Target || fixed >= 0 && !r.resolvesTo(fixes[fixed].To) {
			return nil, false
		}
	}
	return content, true
}

func (r reference) resolvesTo(file string) bool {
	r.to = targetOf(r.Reference)
	return slices.ContainsFunc(r.candidates(), func(written string) bool {
		at, ok := joined(r.File, written)
		return ok && at == file
	})
}
