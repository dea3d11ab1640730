package hook

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"lockkeeper/internal/git"
)

// Effects are the effects of a command that are known before it runs. The comparison after the
// command finds the others.
type Effects struct {
	Writes   []Touch  // files, absolute
	Trees    []Tree   // directories that are removed or changed as a whole
	Names    []string // files that a program names and may write, absolute
	Reads    []Touch  // files that the command may show, absolute
	Programs []string // source texts in other languages that the command contains and certainly runs
	Git      []GitAct // git commands that rewrite shared state
	Index    []IndexAct
	Discards []Discard
	Settings []Setting
	Opaque   bool     // a part of the command may remove or overwrite files that it does not name
	Sweeps   []Sweep  // parts that certainly remove or overwrite such files
	Dirs     []string // directories that the command changes to, absolute
	Reserved string   // a command that only a person may run

	fetches   []git.Fetch // what the git commands so far fetch
	moved     []string    // work trees in which these commands move the branch; the entry anywhere means all of them
	restashed bool        // an earlier part of the command changes which stash is the last one

	Background bool // a part of the command continues after it ends
}

// A Tree is an absolute directory with everything below it.
type Tree struct {
	Dir  string
	Goes bool // the command removes or moves the directory
}

// A GitAct is a git command and the directory in which it runs.
type GitAct struct {
	Name  string
	Dir   string
	Asked *git.Asked // what to ask git about the effect of the act; nil: it may change anything
}

// reader interprets a command as a shell would, as far as its words are literal.
type reader struct {
	dir  string
	env  func(string) (string, bool) // environment of the caller
	vars map[string]string
	plan *Effects

	params    []string // the parameters of the function; nil: unknown
	functions *functions

	prefixes map[string]string // variables of the environment that are set for the current command
	aliases  map[string]string // aliases of git that the command sets
	depth    int

	settled   bool         // the parts of the command so far have only known effects
	pipedFrom *syntax.Stmt // what writes into the pipe that pipedTo reads
	pipedTo   *syntax.Stmt

	piped   string              // the known text that the current command reads from a pipe
	fedBy   []string            // files named by the commands whose output the current command reads
	sources map[string][]string // by output file: the files from which its content was made
	texts   map[string]string   // by output file: its content, if the command spells it out

	maybe bool // the current part runs only under a condition
	left  bool // from here on it is unknown which commands run, or what their names mean

	loops  int      // number of loops around the current part
	within []string // absolute directories in which unknown words name files; nil: anywhere
}

// maxDepth limits nested shells.
const maxDepth = 8

// effectsOf returns the effects of a command. A text that is not valid shell is opaque.
func effectsOf(command, dir string, env func(string) (string, bool)) Effects {
	var p Effects
	r := &reader{dir: dir, env: env, vars: map[string]string{}, aliases: map[string]string{}, functions: &functions{}, plan: &p, sources: map[string][]string{}, texts: map[string]string{}}
	if home, known := env("HOME"); known {
		r.vars["HOME"] = home
	}
	r.script(command)
	r.uncalled(command)
	return p
}

func (r *reader) script(text string) {
	if r.depth >= maxDepth {
		r.opaque()
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil { // another shell may understand the text
		r.opaque()
	}
	if file == nil {
		return
	}
	r.statements(file.Stmts)
}

func (r *reader) statements(list []*syntax.Stmt) {
	for _, s := range list {
		r.statement(s)
	}
}

// inner reads a part that runs in a subshell, so its variables and directory do not affect the rest.
func (r *reader) inner(do func(*reader)) {
	in := *r
	in.vars, in.depth = maps.Clone(r.vars), r.depth+1
	do(&in)
}

// certain reports whether the current command certainly runs as written.
func (r *reader) certain() bool { return !r.maybe && !r.left }

func (r *reader) statement(s *syntax.Stmt) {
	if s == nil {
		return
	}
	if s.Background || s.Coprocess {
		r.plan.Background = true
		front := *s
		front.Background, front.Coprocess = false, false
		r.inner(func(in *reader) { in.statement(&front) })
		return
	}
	var args []string
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		args = r.call(call)
	} else if s.Cmd != nil {
		r.words(s.Cmd)
	}
	for _, redirect := range s.Redirs {
		r.words(redirect)
		r.redirect(redirect)
	}
	r.derive(s)
	if _, ok := s.Cmd.(*syntax.CallExpr); ok {
		r.calls(args)
		r.command(args, s)
		return
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			r.inner(func(in *reader) { in.statement(c.X) })
			r.inner(func(in *reader) {
				in.fedBy, in.piped = slices.Concat(r.fedBy, r.named(c.X)), r.printed(c.X)
				in.pipedFrom, in.pipedTo = c.X, c.Y
				in.statement(c.Y)
				r.meet(in.params)
				r.join(in.vars, in.dir) // zsh runs the last part of a pipeline in the shell itself
			})
			return
		}
		r.statement(c.X)
		if c.Op == syntax.AndStmt && r.succeeds(c.X) {
			r.statement(c.Y)
		} else {
			r.branch(func() { r.statement(c.Y) })
		}
	case *syntax.Subshell:
		r.inner(func(in *reader) { in.statements(c.Stmts) })
	case *syntax.Block:
		r.statements(c.Stmts)
	case *syntax.IfClause:
		r.statements(c.Cond)
		r.branch(func() { r.statements(c.Then) })
		for c = c.Else; c != nil; c = c.Else {
			r.branch(func() { r.statements(c.Cond) })
			r.branch(func() { r.statements(c.Then) })
		}
	case *syntax.WhileClause:
		r.statements(c.Cond)
		r.repeat(func() {
			r.statements(c.Do)
			r.statements(c.Cond)
		})
	case *syntax.ForClause:
		r.loop(c)
	case *syntax.CaseClause:
		for _, item := range c.Items {
			r.branch(func() { r.statements(item.Stmts) })
		}
	case *syntax.FuncDecl:
		r.define(c)
	case *syntax.TimeClause:
		r.statement(c.Stmt)
	case *syntax.CoprocClause:
		r.opaque() // a coproc sets variables
		r.inner(func(in *reader) { in.statement(c.Stmt) })
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
	case *syntax.DeclClause:
		r.declare(c)
	case nil: // the statement has only redirections
	default:
		r.opaque()
	}
}

// loop reads the body of a loop once for each literal word.
func (r *reader) loop(c *syntax.ForClause) {
	each, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		r.repeat(func() { r.statements(c.Do) })
		return
	}
	name := each.Name.Value
	r.sets(name)
	const most = 200
	n := 0
	for _, w := range each.Items {
		for _, word := range r.expand(w) {
			if n++; word == "" || n > most || c.Select { // the word is unknown or empty, or there are too many words
				r.repeat(func() {
					delete(r.vars, name)
					r.statements(c.Do)
				})
			} else {
				r.vars[name] = word
				r.statements(c.Do)
			}
			if n > most {
				return
			}
		}
	}
	delete(r.vars, name)
	if n == 0 {
		r.repeat(func() { r.statements(c.Do) })
	}
}

// call returns the words of a command, after it has read the assignments and substitutions.
// Unknown words are empty.
func (r *reader) call(c *syntax.CallExpr) (args []string) {
	r.words(c)
	for _, w := range c.Args {
		args = append(args, r.expand(w)...)
	}
	r.prefixes = nil
	for _, a := range c.Assigns {
		if len(c.Args) == 0 {
			r.assign(a)
		} else {
			r.prefixed(a)
		}
	}
	return args
}

// expand returns the words that a word expands to: one literal, or the files that match a
// pattern. An unknown word expands to one empty string.
func (r *reader) expand(w *syntax.Word) (list []string) {
	if w == nil {
		return []string{""}
	}
	if list, is := r.positional(w); is {
		return list
	}
	braces := &syntax.Word{Parts: slices.Clone(w.Parts)} // SplitBraces modifies the word, and a loop reads it again
	if !syntax.SplitBraces(braces) {
		if list := r.fields(w); list != nil {
			return list
		}
		return r.pattern(w)
	}
	const most = 200
	for one, err := range expand.BracesSeq(nil, braces) {
		if err != nil || len(list) > most {
			return append(list, "")
		}
		list = append(list, r.pattern(one)...)
	}
	return list
}

// fields returns the words of a known variable that stands alone without quotes. Not every shell
// splits it.
func (r *reader) fields(w *syntax.Word) []string {
	if len(w.Parts) != 1 {
		return nil
	}
	p, is := w.Parts[0].(*syntax.ParamExp)
	if !is {
		return nil
	}
	value, known := r.value(p)
	if !known || strings.ContainsAny(value, "*?[") || !strings.ContainsAny(value, " \t\n") {
		return nil
	}
	r.opaque()
	return strings.Fields(value)
}

// pattern returns the words that a word without braces expands to.
func (r *reader) pattern(w *syntax.Word) []string {
	text, ok, pattern := r.literal(w)
	switch {
	case !ok:
		return []string{""}
	case !pattern || text == "[":
		return []string{text}
	}
	found, err := filepath.Glob(absolute(r.dir, text))
	for _, unlike := range []string{"**", "[!", "[:", "[.", "[="} { // shells interpret these differently from filepath.Glob
		if strings.Contains(text, unlike) {
			return append(found, "")
		}
	}
	switch {
	case err != nil || isPattern(r.dir):
		return []string{""}
	case len(found) == 0:
		return []string{text}
	}
	return found
}

// literal returns the text of a word, whether it is known, and whether it is a pattern.
func (r *reader) literal(w *syntax.Word) (text string, ok, pattern bool) {
	if w == nil {
		return "", false, false
	}
	var b strings.Builder
	for i, part := range w.Parts {
		if !r.part(&b, part, i == 0, &pattern) {
			return "", false, false
		}
	}
	return b.String(), true, pattern
}

func (r *reader) part(b *strings.Builder, part syntax.WordPart, first bool, pattern *bool) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		text := unescaped(p.Value, false)
		if first && strings.HasPrefix(text, "~") {
			home, known := r.vars["HOME"]
			if !known || text != "~" && text[1] != '/' { // such as ~+ and ~user, whose values are unknown
				return false
			}
			text = home + text[1:]
		}
		*pattern = *pattern || strings.ContainsAny(p.Value, "*?[")
		b.WriteString(text)
	case *syntax.SglQuoted:
		text := p.Value
		if p.Dollar {
			decoded, _, err := expand.Format(nil, text, nil)
			if err != nil {
				return false
			}
			text, _, _ = strings.Cut(decoded, "\x00")
		}
		b.WriteString(text)
	case *syntax.DblQuoted:
		for _, in := range p.Parts {
			switch in := in.(type) {
			case *syntax.Lit:
				b.WriteString(unescaped(in.Value, true))
			case *syntax.ParamExp:
				value, known := r.value(in)
				if !known {
					return false
				}
				b.WriteString(value)
			default:
				return false
			}
		}
	case *syntax.ParamExp:
		value, known := r.value(p)
		if !known || strings.ContainsAny(value, " \t\n*?[") { // the shell splits the value into words or expands it to file names
			return false
		}
		b.WriteString(value)
	default:
		return false
	}
	return true
}
