package hook

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// A file that is derived from another and then replaces it, as in jq . f > t && mv t f, is an
// edit like sed -i. The session need not have seen the replaced file.

// derive records which files a statement reads to produce its output files, or the text in them.
func (r *reader) derive(s *syntax.Stmt) {
	for _, d := range s.Redirs {
		if d.Op != syntax.RdrOut && d.Op != syntax.RdrClob {
			continue
		}
		for _, to := range r.expand(d.Word) {
			if to != "" {
				file := absolute(r.dir, to)
				r.sources[file] = slices.Concat(r.fedBy, r.named(s))
				r.texts[file] = r.spelledOut(s)
			}
		}
	}
}

// spelledOut returns what a statement writes to its output file, if it is cat of a known text, or
// echo or printf.
func (r *reader) spelledOut(s *syntax.Stmt) string {
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is {
		return ""
	}
	if len(call.Args) == 1 && call.Args[0].Lit() == "cat" {
		return r.fed(s)
	}
	return r.printed(&syntax.Stmt{Cmd: call})
}

// named lists the absolute paths of the files that commands are given to read. The arguments of
// echo and printf are only text.
func (r *reader) named(in syntax.Node) (files []string) {
	add := func(w *syntax.Word) {
		for _, f := range r.expand(w) {
			if f != "" {
				files = append(files, absolute(r.dir, f))
			}
		}
	}
	syntax.Walk(in, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && !slices.Contains([]string{"echo", "printf"}, n.Args[0].Lit()) {
				for _, w := range n.Args[1:] {
					add(w)
				}
			}
		case *syntax.Redirect:
			if n.Op == syntax.RdrIn {
				add(n.Word)
			}
			return false
		}
		return true
	})
	return files
}
