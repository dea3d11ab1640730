package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// file sets the values of the file. It walks the syntax tree instead of decoding into the
// struct, because every value records its line.
func (l *loader) file(text []byte) {
	if !utf8.Valid(text) {
		l.refuse("configuration file", l.path, "not UTF-8 text", "")
		return
	}
	tokens := lexer.Tokenize(withoutComments(string(text)))
	if t := tooNested(tokens); t != nil {
		l.refuse("configuration file", l.at(t), fmt.Sprintf("more than %d brackets and list signs", maxNesting), "")
		return
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		l.refuseSyntax(err)
		return
	}
	var body ast.Node
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			l.refuseAt(doc.Body, "document", "---", "a second document in one file", "keep one document and remove the line ---")
			return
		}
		body = doc.Body
	}
	if body != nil {
		l.group(body, "")
	}
}

// maxNesting bounds the signs that open a nested value. The parser's time
// grows with the cube of the depth, so a small file of brackets would take minutes. The
// configuration itself is three levels deep.
const maxNesting = 500

// tooNested returns the token that exceeds maxNesting.
func tooNested(tokens token.Tokens) *token.Token {
	n := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType, token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			if n++; n > maxNesting {
				return t
			}
		}
	}
	return nil
}

// group sets the keys of a mapping. A missing value is an empty mapping, so that every line
// below a heading may be commented out.
func (l *loader) group(node ast.Node, prefix string) {
	for _, pair := range l.pairs(node, strings.TrimSuffix(prefix, ".")) {
		l.pair(pair, prefix)
	}
}

func (l *loader) pairs(node ast.Node, key string) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.NullNode:
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	default:
		l.refuseAt(node, cmp.Or(key, "the file"), outline(node), "must hold keys and values, not "+kindOf(node), "")
	}
	return nil
}

func (l *loader) pair(pair *ast.MappingValueNode, prefix string) {
	name, ok := pair.Key.(*ast.StringNode)
	if !ok {
		l.refuseAt(pair.Key, "key", outline(pair.Key), "not a plain word", "")
		return
	}
	key := prefix + name.Value
	if t, ok := l.tables[key]; ok {
		l.table(t, key, pair.Value)
		return
	}
	if i := slices.IndexFunc(l.fields, func(f field) bool { return f.key == key || f.also == key && key != "" }); i >= 0 {
		f := l.fields[i]
		if first, twice := l.config.sources[f.key]; twice && f.also != "" {
			l.refuseAt(pair.Key, "key", key, "another name of the key at "+first, "keep one of the two")
			return
		}
		if f.isList() {
			l.list(f, pair.Value)
		} else {
			l.scalar(f, pair.Value)
		}
		return
	}
	isGroup := func(f field) bool { return strings.HasPrefix(f.key, key+".") }
	if !strings.Contains(name.Value, ".") && slices.ContainsFunc(l.fields, isGroup) {
		l.group(pair.Value, key+".")
		return
	}
	known := l.keysBelow(prefix)
	next := "use one of " + strings.Join(known, ", ")
	if near, ok := Nearest(name.Value, known); ok {
		next = "did you mean " + near + "?"
	}
	l.refuseAt(pair.Key, "key", Redact(key), "unknown key", next)
}

func (l *loader) scalar(f field, node ast.Node) {
	var text string
	switch n := node.(type) {
	case *ast.IntegerNode:
		if f.value.Kind() == reflect.String {
			l.refuseAt(node, f.key, f.hide(n.Token.Value), "must be text, not a number", "put it in quotes")
			return
		}
		text = fmt.Sprint(n.Value)
	case *ast.StringNode:
		if f.value.Kind() != reflect.String && !f.isDuration() {
			l.refuseAt(node, f.key, n.Value, "must be a whole number, not text", "")
			return
		}
		text = n.Value
	default:
		l.refuseAt(node, f.key, outline(node), "must be "+f.wanted()+", not "+kindOf(node), "")
		return
	}
	place := l.at(node.GetToken())
	l.config.places[f.key] = place
	l.apply(f, text, place+": "+f.key, l.source(node.GetToken().Position.Line))
}

// list sets a list. Entries may contain commas, and each is refused at its own position. An
// empty list is usually a mistake and is refused, unless the field allows it.
func (l *loader) list(f field, node ast.Node) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 && !f.noneOK {
		what := kindOf(node)
		if ok {
			what = "an empty one"
		}
		l.refuseAt(node, f.key, outline(node), "must be "+f.wanted()+", not "+what, "")
		return
	}
	known := len(l.problems)
	texts := make([]string, len(seq.Values))
	for i, value := range seq.Values {
		text, ok := value.(*ast.StringNode)
		if !ok {
			l.refuseAt(value, f.key, outline(value), "must hold text, not "+kindOf(value), "put it in quotes")
			continue
		}
		if err := f.checkText(text.Value); err != nil {
			l.refuseAt(value, f.key, text.Value, err.Error(), "")
		}
		texts[i] = text.Value
		l.config.places[entryKey(f.key, i)] = l.at(value.GetToken())
	}
	if len(l.problems) == known {
		f.setList(texts)
		l.config.sources[f.key] = l.source(node.GetToken().Position.Line)
	}
}

func entryKey(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }

func (f field) wanted() string {
	switch {
	case f.isList():
		return "a list of texts"
	case f.isDuration():
		return "a duration like 30m"
	case f.value.Kind() == reflect.String:
		return "text"
	}
	return "a whole number"
}

func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys"
	case *ast.SequenceNode:
		return "a list"
	case *ast.BoolNode:
		return "true or false"
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a fraction"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tagged value"
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.IntegerNode:
		return "a number"
	}
	return "a single value"
}

// outline returns the text of a node for a message, in full only if it cannot contain a
// password.
func outline(node ast.Node) string {
	switch node.(type) {
	case *ast.NullNode, *ast.BoolNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.IntegerNode, *ast.MergeKeyNode:
		return node.GetToken().Value
	case *ast.MappingNode, *ast.MappingValueNode:
		return "{…}"
	case *ast.SequenceNode:
		return "[…]"
	}
	return "…"
}

func (l *loader) refuseAt(node ast.Node, what, value, reason, next string) {
	l.refuse(l.at(node.GetToken())+": "+what, value, reason, next)
}

// refuseSyntax reports only the first line of the parser's error. The rest quotes the file,
// which may contain a password.
func (l *loader) refuseSyntax(err error) {
	where, reason := l.path, "not valid YAML"
	var yamlErr yaml.Error
	if errors.As(err, &yamlErr) {
		reason, _, _ = strings.Cut(yamlErr.GetMessage(), "\n")
		where = l.at(yamlErr.GetToken())
	}
	l.refuse("configuration file", where, reason, "")
}

// at returns the position of a token as file:line:column.
func (l *loader) at(t *token.Token) string {
	if t == nil || t.Position == nil {
		return l.path
	}
	return fmt.Sprintf("%s:%d:%d", l.path, t.Position.Line, t.Position.Column)
}
