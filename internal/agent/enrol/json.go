package enrol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A node is a value of a JSON text. The text may have comments, because some hosts allow them.
type node hujson.Value

// syntaxError says where a text cannot be parsed.
type syntaxError struct {
	at     int
	reason string
}

func (e *syntaxError) Error() string { return e.reason }

const (
	byteOrderMark = "\ufeff"

	// maxContainers limits the objects and arrays of a file, and so the parser's stack.
	maxContainers = 10_000
)

// parseJSON parses a text, which must be one value without trailing commas.
func parseJSON(text string) (*node, error) {
	if strings.Count(text, "{")+strings.Count(text, "[") > maxContainers {
		return nil, &syntaxError{0, fmt.Sprintf("more than %d objects and lists", maxContainers)}
	}
	if rest, marked := strings.CutPrefix(text, byteOrderMark); marked {
		text = strings.Repeat(" ", len(byteOrderMark)) + rest // spaces keep all offsets the same
	}
	// hujson requires a newline after a comment, also at the end of the file.
	root, err := hujson.Parse([]byte(text + "\n"))
	if err != nil {
		return nil, toSyntaxError(text, err)
	}
	for v := range root.All() {
		if list := (*node)(v).children(); len(list) > 0 && list[len(list)-1].value.AfterExtra != nil {
			return nil, &syntaxError{v.EndOffset - 1, "a trailing comma is not allowed"}
		}
		if number, is := v.Value.(hujson.Literal); is && number.Kind() == '0' && json.Unmarshal(number, new(float64)) != nil {
			return nil, &syntaxError{v.StartOffset, "the number is out of range"}
		}
	}
	return (*node)(&root), nil
}

// toSyntaxError turns the position in an error of hujson into an offset.
func toSyntaxError(text string, err error) *syntaxError {
	var line, column int
	if _, unread := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); unread != nil {
		return &syntaxError{0, err.Error()}
	}
	start := 0
	for range line - 1 {
		start += strings.IndexByte(text[start:], '\n') + 1
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return &syntaxError{min(start+column-1, len(text)), err.Error()}
}

// kind returns '{', '[', '"', '0', 't', 'f' or 'n', or 0 for a missing value.
func (n *node) kind() hujson.Kind {
	if n == nil {
		return 0
	}
	return n.Value.Kind()
}

// child is a member of an object or an element of an array.
type child struct {
	key    string // the name of a member
	start  int
	before *hujson.Extra // white space and comments before the child
	value  *node
}

// children lists the members of an object or the elements of an array.
func (n *node) children() (list []child) {
	if n == nil {
		return nil
	}
	switch v := n.Value.(type) {
	case *hujson.Object:
		for i := range v.Members {
			m := &v.Members[i]
			list = append(list, child{m.Name.Value.(hujson.Literal).String(), m.Name.StartOffset, &m.Name.BeforeExtra, (*node)(&m.Value)})
		}
	case *hujson.Array:
		for i := range v.Elements {
			e := &v.Elements[i]
			list = append(list, child{"", e.StartOffset, &e.BeforeExtra, (*node)(e)})
		}
	}
	return list
}

// elements lists the values of an array.
func (n *node) elements() (list []*node) {
	if n.kind() != '[' {
		return nil
	}
	for _, c := range n.children() {
		list = append(list, c.value)
	}
	return list
}

// index returns the index of the last member with this name, which overrides earlier ones, or -1.
func (n *node) index(key string) int {
	if n.kind() != '{' {
		return -1
	}
	for i, c := range slices.Backward(n.children()) {
		if c.key == key {
			return i
		}
	}
	return -1
}

// find follows the names of members. It returns nil if there is no such value.
func (n *node) find(path ...string) *node {
	for _, key := range path {
		i := n.index(key)
		if i < 0 {
			return nil
		}
		n = n.children()[i].value
	}
	return n
}

// text returns the value of a string, or "" for any other value.
func (n *node) text() string {
	if n.kind() != '"' {
		return ""
	}
	return n.Value.(hujson.Literal).String()
}

// plain returns the value as encoding/json decodes it.
func (n *node) plain() (out any) {
	v := (*hujson.Value)(n).Clone()
	v.Standardize()
	if err := json.Unmarshal(v.Pack(), &out); err != nil {
		return nil
	}
	return out
}
