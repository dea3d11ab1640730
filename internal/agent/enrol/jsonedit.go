package enrol

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

const blanks = " \t\r\n"

// put appends a value to an object, under a name, or to an array, in the layout of its
// neighbors. text is the text from which root was parsed.
func put(text string, root, at *node, key string, value any) (string, error) {
	newline, unit := newlineOf(text), "  "
	if list := root.children(); len(list) > 0 {
		if first, alone := indentOf(text, list[0].start); alone && first != "" {
			unit = first
		}
	}
	base, _ := indentOf(text, at.StartOffset)
	indent := base + unit
	rest := string(*at.closing())
	oneLine := false
	if list := at.children(); len(list) > 0 {
		if first, alone := indentOf(text, list[0].start); alone {
			indent = first
		}
		oneLine = !strings.Contains(string(*list[0].before)+rest, "\n")
	}
	if oneLine {
		item, err := encode(value, "", "")
		at.add(" ", key, item)
		return pack(text, root), err
	}
	item, err := encode(value, indent, unit)
	if err != nil {
		return "", err
	}
	kept := strings.TrimRight(rest, blanks)
	tail := rest[len(kept):]
	if line := strings.LastIndexByte(tail, '\n'); line >= 0 {
		base = tail[line+1:]
	}
	at.add(kept+newline+indent, key, strings.ReplaceAll(item, "\n", newline))
	*at.closing() = hujson.Extra(newline + base)
	return pack(text, root), nil
}

// add appends a child with the JSON text of its value.
func (n *node) add(before, key, item string) {
	value := hujson.Value{Value: hujson.Literal(item)}
	switch v := n.Value.(type) {
	case *hujson.Object:
		value.BeforeExtra = hujson.Extra(" ")
		v.Members = append(v.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: hujson.Extra(before), Value: hujson.String(key)}, Value: value})
	case *hujson.Array:
		value.BeforeExtra = hujson.Extra(before)
		v.Elements = append(v.Elements, value)
	}
}

// closing returns the white space and comments before the closing bracket.
func (n *node) closing() *hujson.Extra {
	if v, isObject := n.Value.(*hujson.Object); isObject {
		return &v.AfterExtra
	}
	return &n.Value.(*hujson.Array).AfterExtra
}

// pack returns the text of an edited root. text is the text from which root was parsed.
func pack(text string, root *node) string {
	out := strings.TrimSuffix(string((*hujson.Value)(root).Pack()), "\n") // parseJSON added this line end
	if strings.HasPrefix(text, byteOrderMark) {
		out = byteOrderMark + out[len(byteOrderMark):]
	}
	return out
}

// cut removes a child of an object or an array and its comma. Comments stay.
func cut(text string, root, from *node, i int) string {
	list, closing := from.children(), from.closing()
	this := list[i]
	if i+1 < len(list) {
		next := list[i+1].before
		*next = slices.Concat(*this.before, bytes.TrimLeft(slices.Concat(this.value.AfterExtra, *next), blanks))
	} else {
		kept := *this.before
		if i > 0 {
			previous := list[i-1].value
			kept, previous.AfterExtra = slices.Concat(previous.AfterExtra, kept), nil
		}
		kept = bytes.TrimRight(kept, blanks)
		switch {
		case i == 0 && len(bytes.Trim(slices.Concat(kept, *closing), blanks)) == 0:
			*closing = nil
		// The line comment must not swallow the closing bracket.
		case bytes.Contains(kept, []byte("//")) && !bytes.HasPrefix(bytes.TrimLeft(*closing, " \t\r"), []byte("\n")):
			*closing = slices.Concat(kept, []byte("\n"), *closing)
		default:
			*closing = slices.Concat(kept, *closing)
		}
	}
	switch v := from.Value.(type) {
	case *hujson.Object:
		v.Members = slices.Delete(v.Members, i, i+1)
	case *hujson.Array:
		v.Elements = slices.Delete(v.Elements, i, i+1)
	}
	return pack(text, root)
}

func newlineOf(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// indentOf returns the indentation of the line of an offset, and whether nothing else is in
// front of the offset on that line.
func indentOf(text string, at int) (indent string, alone bool) {
	begin := strings.LastIndexByte(text[:at], '\n') + 1
	line := text[begin:at]
	indent = line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return indent, begin > 0 && len(indent) == len(line)
}

func encode(value any, prefix, indent string) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	err := e.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}
