package web

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// An element is one element of a page.
type element struct {
	name   string
	attr   map[string]string
	above  *element
	within []*element
	text   string // its own text, without that of its children
}

// read parses a page. It fails the test if elements are not closed in order.
func read(t *testing.T, page string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{}
	at := root
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: strings.ToLower(token.Name.Local), attr: map[string]string{}, above: at}
			for _, a := range token.Attr {
				name := a.Name.Local
				if a.Name.Space != "" {
					name = a.Name.Space + ":" + name
				}
				if _, twice := e.attr[name]; twice {
					t.Errorf("<%s> has %s twice", e.name, name)
				}
				e.attr[name] = a.Value
			}
			at.within = append(at.within, e)
			at = e
		case xml.EndElement:
			if at.name != strings.ToLower(token.Name.Local) {
				t.Fatalf("</%s> ends <%s>", token.Name.Local, at.name)
			}
			at = at.above
		case xml.CharData:
			at.text += string(token)
		}
	}
	return root
}

// all returns the elements below e with one of the names, in order. Without names, it returns all of them.
func (e *element) all(names ...string) (list []*element) {
	for _, in := range e.within {
		if len(names) == 0 || slices.Contains(names, in.name) {
			list = append(list, in)
		}
		list = append(list, in.all(names...)...)
	}
	return list
}

// words returns all text in an element.
func (e *element) words() string {
	text := e.text
	for _, in := range e.within {
		text += " " + in.words()
	}
	return strings.Join(strings.Fields(text), " ")
}

// inside reports whether an element has an ancestor with the name.
func (e *element) inside(name string) bool {
	for up := e.above; up != nil; up = up.above {
		if up.name == name {
			return true
		}
	}
	return false
}

func (e *element) String() string { return fmt.Sprintf("<%s %v>", e.name, e.attr) }

// fields returns the fields that a browser sends when a button of the form is pressed.
func (e *element) fields(word string) (fields [][2]string) {
	for _, in := range e.all("input", "textarea", "select", "button") {
		name, value := in.attr["name"], in.attr["value"]
		_, checked := in.attr["checked"]
		switch {
		case name == "", in.name == "button" && value != word, (in.attr["type"] == "checkbox" || in.attr["type"] == "radio") && !checked:
			continue
		case in.name == "textarea":
			value = in.text
		case in.name == "select":
			for i, option := range in.all("option") {
				if _, chosen := option.attr["selected"]; i == 0 || chosen {
					value = option.attr["value"]
					if _, has := option.attr["value"]; !has {
						value = option.words()
					}
				}
			}
		}
		fields = append(fields, [2]string{name, value})
	}
	return fields
}
