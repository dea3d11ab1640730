package hook

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A function is one that a command defines.
type function struct {
	name   string
	body   *syntax.Stmt
	at     reader // the state of the shell where it is defined
	called bool   // its calls are read with their words
	read   bool   // it is read with unknown words
}

// functions are those that a command defines.
type functions struct {
	list  []*function
	calls int
	all   bool // an unknown word may call any of them
}

// mostCalls limits the calls of functions that are read, because each may contain others.
const mostCalls = 100

// define notes a function. It may replace any program.
func (r *reader) define(c *syntax.FuncDecl) {
	r.left = true
	r.opaque()
	if slices.ContainsFunc(r.functions.list, func(f *function) bool { return f.body == c.Body }) {
		return
	}
	f := &function{body: c.Body, at: *r}
	if c.Name != nil {
		f.name = c.Name.Value
	}
	f.at.vars, f.at.params, f.at.depth = maps.Clone(r.vars), nil, r.depth+1
	r.functions.list = append(r.functions.list, f)
}

// calls reads the functions that a command with these words calls.
func (r *reader) calls(args []string) {
	if len(args) == 0 {
		return
	}
	r.functions.all = r.functions.all || args[0] == ""
	for _, f := range slices.Clone(r.functions.list) {
		if args[0] == "" || f.name != args[0] {
			continue
		}
		if r.functions.calls++; r.functions.calls > mostCalls || r.depth >= maxDepth {
			r.functions.all = true
			return
		}
		f.called = true
		params := r.params
		r.params = args[1:]
		r.depth++
		r.statement(f.body)
		r.params = params
		r.depth--
	}
}

// uncalled reads with unknown words each function whose calls are not all read: nothing calls it,
// or its name occurs elsewhere in the command, as in trap or export -f.
func (r *reader) uncalled(command string) {
	for again := true; again; {
		again = false
		for _, f := range slices.Clone(r.functions.list) {
			if f.read || f.called && !r.functions.all && !isNamedElsewhere(f.name, command) {
				continue
			}
			f.read, again = true, true
			f.at.statement(f.body)
		}
	}
}

// isNamedElsewhere reports whether a command names a function other than where it defines or calls
// it.
func isNamedElsewhere(name, command string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return true
	}
	spelled := 0
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil && n.Name.Value == name {
				spelled++
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == name {
				spelled++
			}
		}
		return true
	})
	isLetter := func(c rune) bool { return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
	for _, word := range strings.FieldsFunc(command, func(c rune) bool { return !isLetter(c) }) {
		if word == name {
			spelled--
		}
	}
	return spelled != 0
}

// positional returns the words that "$@" stands for, if a word is nothing else.
func (r *reader) positional(w *syntax.Word) (list []string, is bool) {
	if len(w.Parts) != 1 || r.params == nil {
		return nil, false
	}
	quoted, is := w.Parts[0].(*syntax.DblQuoted)
	if !is || quoted.Dollar || len(quoted.Parts) != 1 {
		return nil, false
	}
	p, is := quoted.Parts[0].(*syntax.ParamExp)
	if !is || !isPlain(p) || p.Param.Value != "@" {
		return nil, false
	}
	return slices.Clone(r.params), true
}

// param returns the value of a positional parameter, such as 1 or *, if it is known.
func (r *reader) param(name string) (value string, known bool) {
	number, err := strconv.Atoi(name)
	if name == "*" && len(r.params) == 1 { // several are joined by a part of IFS
		number, err = 1, nil
	}
	if err != nil || number < 1 || number > len(r.params) || slices.Contains(r.params[:number], "") { // an unknown word may be several
		return "", false
	}
	return r.params[number-1], true
}

// shift drops the first parameter. Other ways to change the parameters make them unknown.
func (r *reader) shift(operands []string) {
	if len(operands) > 0 || len(r.params) == 0 || r.params[0] == "" {
		r.params = nil
		return
	}
	r.params = r.params[1:]
}

// meet forgets the parameters if they differ from those in another possible state of the shell.
func (r *reader) meet(params []string) {
	if params == nil || !slices.Equal(r.params, params) {
		r.params = nil
	}
}
