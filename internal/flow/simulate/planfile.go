package simulate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"lockkeeper"
	"lockkeeper/internal/project/config"
)

// maxFileSize is several times the largest plan.
const maxFileSize = 32 << 20

// ReadPlan reads and checks the plan at path: items, or the tasks of a flow, of which times has known durations.
// Messages use name for it.
func ReadPlan(path, name string, times Times) (*Plan, error) {
	text, err := readFile(path)
	return checked(name, text, times, err)
}

// ReadPlanFrom reads and checks a plan from a stream. Messages use name for it.
func ReadPlanFrom(from io.Reader, name string, times Times) (*Plan, error) {
	text, err := readAll(from)
	return checked(name, text, times, err)
}

// checked parses a plan and returns all its problems. The argument err is the error of reading it.
func checked(name string, text []byte, times Times, err error) (*Plan, error) {
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return nil, &lockkeeper.InputError{Field: "plan", Value: name, Reason: err.Error(), Next: "name a YAML file that you may read, or - for standard input"}
	}
	if IsTasks(text) {
		return FromTasks(name, text, times)
	}
	plan, err := parsePlan(name, text)
	if err != nil && (plan == nil || len(plan.Items) == 0) {
		return nil, err
	}
	return plan, errors.Join(err, plan.check())
}

func readAll(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxFileSize+1))
	if err == nil && len(text) > maxFileSize {
		err = fmt.Errorf("larger than %d bytes", maxFileSize)
	}
	return text, err
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("a directory")
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

// parsePlan parses a plan. It walks the syntax tree instead of decoding into structs, so that
// every problem has a line.
func parsePlan(name string, text []byte) (*Plan, error) {
	r := &reader{name: name}
	if !utf8.Valid(text) {
		r.refuse("plan", name, "not UTF-8 text", "save it as UTF-8")
		return nil, errors.Join(r.problems...)
	}
	tokens := lexer.Tokenize(string(text))
	if t := tooDeep(tokens); t != nil {
		r.refuse("plan", r.at(t), "nested too deep", shape)
		return nil, errors.Join(r.problems...)
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		r.refuseSyntax(err)
		return nil, errors.Join(r.problems...)
	}
	plan := &Plan{}
	for i, doc := range tree.Docs {
		if i > 0 && doc.Body != nil {
			r.refuseNode(doc.Body, "document", "a second document in one file", "keep one document and remove the line ---")
			break
		}
		for _, pair := range r.pairs(doc.Body, "the plan", "items") {
			plan.Items = r.items(pair.Value)
		}
	}
	return plan, errors.Join(r.problems...)
}

// maxDepth and maxColumn bound the nesting of a plan, by brackets and by indentation, because
// the parser is recursive.
const (
	maxDepth  = 16
	maxColumn = 1_000
)

func tooDeep(tokens token.Tokens) *token.Token {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			if t.Position.Column > maxColumn {
				return t
			}
		}
		if depth > maxDepth {
			return t
		}
	}
	return nil
}

// shape is the next step for a file that is not a plan.
const shape = "lockkeeper simulate --help shows a plan"

// A reader turns a syntax tree into a plan and collects problems.
type reader struct {
	name     string
	problems []error
}

func (r *reader) refuse(where, value, reason, next string) {
	r.problems = append(r.problems, &lockkeeper.InputError{Field: where, Value: value, Reason: reason, Next: next})
}

func (r *reader) refuseNode(node ast.Node, what, reason, next string) {
	r.refuse(r.at(node.GetToken())+": "+what, node.GetToken().Value, reason, next)
}

func (r *reader) refuseSyntax(err error) {
	where, reason := r.name, "not valid YAML"
	var wrong yaml.Error
	if errors.As(err, &wrong) {
		reason, _, _ = strings.Cut(wrong.GetMessage(), "\n") // the rest quotes the file
		where = r.at(wrong.GetToken())
	}
	r.refuse("plan", where, reason, shape)
}

// at returns the position of a token in the format of editors.
func (r *reader) at(t *token.Token) string {
	if t == nil || t.Position == nil {
		return r.name
	}
	return fmt.Sprintf("%s:%d:%d", r.name, t.Position.Line, t.Position.Column)
}

// pairs returns the keys and values of a mapping, without unknown keys.
func (r *reader) pairs(node ast.Node, what string, known ...string) (pairs []*ast.MappingValueNode) {
	var all []*ast.MappingValueNode
	switch n := node.(type) {
	case nil, *ast.NullNode:
	case *ast.MappingNode:
		all = n.Values
	case *ast.MappingValueNode:
		all = []*ast.MappingValueNode{n}
	default:
		r.refuseNode(node, what, "must have keys and values", "use the keys "+strings.Join(known, ", "))
	}
	for _, pair := range all {
		if key, plain := pair.Key.(*ast.StringNode); plain && slices.Contains(known, key.Value) {
			pairs = append(pairs, pair)
		} else {
			r.refuseNode(pair.Key, "key", "unknown key of "+what, meant(pair.Key.GetToken().Value, known, "use one of "+strings.Join(known, ", ")))
		}
	}
	return pairs
}

func (r *reader) items(node ast.Node) (items []Item) {
	for _, value := range r.list(node, "items") {
		it := Item{at: r.at(value.GetToken())}
		fields := map[string]any{"name": &it.Name, "phase": &it.Phase, "project": &it.Project, "unit": &it.Unit,
			"duration": &it.Duration, "reads": &it.Reads, "writes": &it.Writes, "after": &it.After}
		for i, pair := range r.pairs(value, "an item", "name", "phase", "project", "unit", "duration", "reads", "writes", "after") {
			if i == 0 {
				it.at = r.at(pair.Key.GetToken())
			}
			key := pair.Key.(*ast.StringNode).Value
			before := len(r.problems)
			switch into := fields[key].(type) {
			case *string:
				*into = r.text(pair.Value, key)
			case *[]string:
				*into = r.texts(pair.Value, key)
			case *time.Duration:
				*into = r.duration(pair.Value)
			}
			if len(r.problems) > before {
				it.refused = append(it.refused, key)
			}
		}
		items = append(items, it)
	}
	return items
}

func (r *reader) text(node ast.Node, what string) string {
	text, ok := node.(*ast.StringNode)
	switch {
	case !ok:
		r.refuseNode(node, what, "must be text", "write it in quotes")
		return ""
	case text.Value == "":
		r.refuseNode(node, what, "empty", "fill it in, or leave the key out")
	}
	return text.Value
}

// list returns the values of a list. Null is an empty list.
func (r *reader) list(node ast.Node, what string) []ast.Node {
	switch n := node.(type) {
	case *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		return n.Values
	}
	r.refuseNode(node, what, "must be a list", "write it like [a, b], or one value per line after a dash")
	return nil
}

func (r *reader) texts(node ast.Node, what string) (texts []string) {
	for _, value := range r.list(node, what) {
		texts = append(texts, r.text(value, what))
	}
	return texts
}

func (r *reader) duration(node ast.Node) time.Duration {
	var text string
	switch n := node.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.IntegerNode:
		text = fmt.Sprint(n.Value)
	case *ast.FloatNode:
		text = n.GetToken().Value
	}
	d, err := parseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("zero")
	}
	if err != nil {
		r.refuseNode(node, "duration", err.Error(), "say how long it will take, such as 2m")
	}
	return d
}

// parseDuration parses a duration of the configuration, or seconds with a fraction.
func parseDuration(text string) (time.Duration, error) {
	seconds := strings.TrimSuffix(text, "s")
	if whole, fraction, ok := strings.Cut(seconds, "."); ok && strings.Trim(whole+fraction, "0123456789") == "" {
		n, err := strconv.ParseFloat(seconds, 64)
		return time.Duration(min(n, 2*maxDuration.Seconds()) * float64(time.Second)), err
	}
	return config.ParseDuration(text)
}
