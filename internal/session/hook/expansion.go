package hook

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// words reads everything that a shell evaluates to build the words of a command, such as
// command substitutions. It skips the statements of a compound command, which are read
// separately.
func (r *reader) words(in syntax.Node) {
	syntax.Walk(in, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			return n == in
		case *syntax.CmdSubst:
			r.inner(func(in *reader) { in.statements(n.Stmts) })
			return false
		case *syntax.ProcSubst:
			r.inner(func(in *reader) { in.statements(n.Stmts) })
			return false
		case *syntax.ParamExp:
			r.parameter(n)
		case *syntax.ArithmExp:
			r.arithmetic(n.X)
		case *syntax.ArithmCmd:
			r.arithmetic(n.X)
		case *syntax.LetClause, *syntax.CStyleLoop, *syntax.ExtGlob: // zsh may run code in an ExtGlob
			r.opaque()
		case *syntax.DblQuoted:
			if n.Dollar {
				r.opaque() // the shell expands the translated text
			}
		case *syntax.Assign:
			if n.Index != nil {
				r.arithmetic(n.Index)
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				r.opaque()
			}
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				r.operand(n.X)
				r.operand(n.Y)
			}
		}
		return true
	})
}

// parameter makes the command opaque unless an expansion only yields text.
func (r *reader) parameter(p *syntax.ParamExp) {
	if p.Param == nil || p.Excl || p.Width || p.IsSet || p.Flags != nil || p.NestedParam != nil || p.Modifiers != nil || p.Names != 0 {
		r.opaque()
		return
	}
	if p.Index != nil {
		if w, is := p.Index.(*syntax.Word); !is || w.Lit() != "@" && w.Lit() != "*" {
			r.arithmetic(p.Index)
		}
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				r.arithmetic(x)
			}
		}
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull,
		syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix,
		syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		r.sets(p.Param.Value)
	case syntax.OtherParamOps:
		if !slices.Contains([]string{"Q", "U", "u", "L"}, p.Exp.Word.Lit()) {
			r.opaque()
		}
	default:
		r.opaque()
	}
}

// arithmetic makes the command opaque unless an expression has only numbers: a shell evaluates
// the text of a variable in it, with the commands that it contains.
func (r *reader) arithmetic(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		r.operand(x)
	case *syntax.ParenArithm:
		r.arithmetic(x.X)
	case *syntax.UnaryArithm:
		if r.arithmetic(x.X); x.Op == syntax.Inc || x.Op == syntax.Dec {
			r.opaque()
		}
	case *syntax.BinaryArithm:
		r.arithmetic(x.X)
		r.arithmetic(x.Y)
		if strings.HasSuffix(x.Op.String(), "=") && !slices.Contains([]syntax.BinAritOperator{syntax.Eql, syntax.Neq, syntax.Leq, syntax.Geq}, x.Op) {
			r.opaque()
		}
	default:
		r.opaque()
	}
}

// operand makes the command opaque unless a word of an expression is a number.
func (r *reader) operand(x syntax.Node) {
	w, is := x.(*syntax.Word)
	if !is {
		r.opaque()
		return
	}
	if len(w.Parts) == 1 {
		switch p := w.Parts[0].(type) {
		case *syntax.ParamExp:
			if p.Param != nil && (strings.Contains("?#$!", p.Param.Value) || p.Length) && p.Exp == nil && p.Index == nil {
				return // the value is always a number
			}
		case *syntax.ArithmExp:
			return // Walk visits the expression separately
		}
	}
	text, known, _ := r.literal(w)
	if value, set := r.vars[text]; set {
		text = value
	}
	if !known || !isNumber(text) {
		r.opaque()
	}
}

// sets notes that a variable gets an unknown value.
func (r *reader) sets(name string) {
	delete(r.vars, name)
	r.steer(name)
}

// steer makes the command opaque if a variable may influence a shell or a program. A variable in
// the environment is exported.
func (r *reader) steer(name string) {
	if _, exported := r.env(name); exported || !steersNothing(name) {
		r.opaque()
	}
}

// prefixed judges an assignment before a program, which sets the program's environment.
func (r *reader) prefixed(a *syntax.Assign) {
	value, _, _ := r.literal(a.Value)
	if a.Name == nil || a.Append || a.Array != nil || a.Index != nil || !isPlainSetting(a.Name.Value, value) {
		r.opaque()
	}
	if a.Name != nil {
		r.prefix(a.Name.Value, value)
	}
}

// prefix notes a variable that is set for the current command alone.
func (r *reader) prefix(name, value string) {
	if r.prefixes == nil {
		r.prefixes = map[string]string{}
	}
	r.prefixes[name] = value
}

// assign reads an assignment to a shell variable.
func (r *reader) assign(a *syntax.Assign) {
	if a.Name == nil {
		r.opaque() // the name is unknown, as in declare "$x"
		return
	}
	name := a.Name.Value
	was, known := r.vars[name]
	r.sets(name)
	if a.Value == nil || a.Index != nil {
		return
	}
	text, ok, _ := r.literal(a.Value)
	switch {
	case !ok || a.Append && !known:
		return
	case strings.Contains(text, "$(") || strings.Contains(text, "`"):
		r.opaque() // a shell may evaluate the value later
	case a.Append:
		text = was + text
	}
	r.vars[name] = text
}

// declare reads declare, export, local, readonly and typeset. Options other than the known ones
// evaluate values or create references to other variables.
func (r *reader) declare(c *syntax.DeclClause) {
	exports := c.Variant.Value == "export"
	for _, a := range c.Args {
		if a.Name != nil {
			if r.assign(a); exports {
				r.opaque()
			}
			continue
		}
		option, known, _ := r.literal(a.Value)
		if !known || strings.Trim(option, "-argpfFA") != "" || c.Variant.Value == "nameref" {
			r.opaque()
		}
	}
}

// value returns the value of a variable if it is known and the expansion does not modify it.
func (r *reader) value(p *syntax.ParamExp) (value string, known bool) {
	if !isPlain(p) {
		return "", false
	}
	if p.Param.Value == "PWD" {
		return r.dir, true
	}
	if value, known = r.vars[p.Param.Value]; known {
		return value, true
	}
	return r.param(p.Param.Value)
}

// isPlain reports whether an expansion yields the value of a variable as it is.
func isPlain(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Length && !p.Excl && p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Width && !p.IsSet
}

// branch reads a part that runs only under a condition. Variables and the directory become
// unknown if the part changes them.
func (r *reader) branch(do func()) {
	was, dir, vars, params := r.maybe, r.dir, maps.Clone(r.vars), r.params
	r.maybe = true
	do()
	r.maybe = was
	r.meet(params)
	r.join(vars, dir)
}

// join forgets the variables and the directory that differ from another possible state of the shell.
func (r *reader) join(vars map[string]string, dir string) {
	for name, value := range r.vars {
		if other, known := vars[name]; !known || other != value {
			delete(r.vars, name)
		}
	}
	if r.dir != dir {
		r.opaque()
	}
}

// repeat reads a part that runs any number of times, until the known variables no longer
// change.
func (r *reader) repeat(do func()) {
	const mostRounds, mostLoops = 4, 4
	r.loops++
	defer func() { r.loops-- }()
	for range mostRounds {
		before, params := maps.Clone(r.vars), r.params
		if r.branch(do); maps.Equal(before, r.vars) && (r.params != nil || params == nil) {
			return
		}
		if r.loops > mostLoops { // each round reads the inner loops again
			break
		}
	}
	r.opaque()
}

// unescaped removes the backslashes that a shell removes. Between double quotes most backslashes
// stay.
func unescaped(text string, quoted bool) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
