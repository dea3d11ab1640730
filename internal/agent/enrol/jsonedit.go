package enrol

import (
	"bytes"
	"encoding/json"
	"strings"
)

// put adds a value to the end of an object, under a name, or of an array. It is laid out
// as what is there.
func put(text string, root, at *node, key string, value any) (string, error) {
	newline, unit := newlineOf(text), "  "
	if list := root.spans(); len(list) > 0 {
		if first, alone := indentOf(text, list[0][0]); alone && first != "" {
			unit = first
		}
	}
	closing, list := at.end-1, at.spans()
	base, _ := indentOf(text, at.start)
	indent := base + unit
	behind := at.start + 1 // of what is there
	if len(list) > 0 {
		behind = list[len(list)-1][1]
		if first, alone := indentOf(text, list[0][0]); alone {
			indent = first
		}
	}
	rest := text[behind:closing] // white space and comments
	if len(list) > 0 && !strings.Contains(text[at.start:list[0][0]]+rest, "\n") {
		item, err := compact(key, value)
		return text[:behind] + ", " + item + text[behind:], err
	}
	item, err := spread(key, value, indent, unit, newline)
	if err != nil {
		return "", err
	}
	kept := strings.TrimRight(rest, " \t\r\n")
	tail := rest[len(kept):]
	if !strings.Contains(tail, "\n") {
		tail = newline + base
	} else {
		tail = newline + tail[strings.LastIndexByte(tail, '\n')+1:]
	}
	comma := ","
	if len(list) == 0 {
		comma = ""
	}
	return text[:behind] + comma + kept + newline + indent + item + tail + text[closing:], nil
}

// newlineOf is how the lines of a text end.
func newlineOf(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// indentOf is the white space at the beginning of the line of an offset, and whether nothing
// else stands before the offset.
func indentOf(text string, at int) (indent string, alone bool) {
	begin := strings.LastIndexByte(text[:at], '\n') + 1
	line := text[begin:at]
	indent = line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return indent, begin > 0 && len(indent) == len(line)
}

// named is a value under a name; without one, in an array, the value alone.
func named(key, value string) string {
	if key == "" {
		return value
	}
	name, _ := json.Marshal(key) // a string always can be
	return string(name) + ": " + value
}

// compact is a value on one line.
func compact(key string, value any) (string, error) {
	text, err := encode(value, "", "")
	return named(key, text), err
}

// spread is a value over several lines.
func spread(key string, value any, indent, unit, newline string) (string, error) {
	text, err := encode(value, indent, unit)
	return named(key, strings.ReplaceAll(text, "\n", newline)), err
}

func encode(value any, prefix, indent string) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	err := e.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// cut takes the child with a number out of an object or an array, with the comma that
// parted it from its neighbour. Comments stay.
func cut(text string, from *node, i int) string {
	list := from.spans()
	this := list[i]
	switch {
	case i+1 < len(list):
		after := text[this[1]:list[i+1][0]]
		comma := commaIn(after)
		return text[:this[0]] + strings.TrimLeft(after[:comma]+after[comma+1:], " \t\r\n") + text[list[i+1][0]:]
	case i > 0:
		before, after := text[list[i-1][1]:this[0]], text[this[1]:]
		comma := commaIn(before)
		kept := strings.TrimRight(before[:comma]+before[comma+1:], " \t\r\n")
		return text[:list[i-1][1]] + abreast(kept, after)
	}
	open, closing := from.start+1, from.end-1
	before, after := text[open:this[0]], text[this[1]:closing]
	if strings.TrimSpace(before+after) == "" {
		return text[:open] + text[closing:]
	}
	return text[:open] + abreast(strings.TrimRight(before, " \t\r\n"), text[this[1]:])
}

// abreast puts a text behind white space and comments that were kept: one that lasts up to
// the end of its line must not swallow what follows.
func abreast(kept, after string) string {
	if strings.Contains(kept, "//") && !strings.HasPrefix(strings.TrimLeft(after, " \t\r"), "\n") {
		kept += "\n"
	}
	return kept + after
}

// commaIn is where the comma is between two values, outside of comments.
func commaIn(between string) int {
	s := &scanner{text: between}
	s.space()
	return s.at
}
