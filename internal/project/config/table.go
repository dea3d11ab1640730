package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A Table is a group of the file with user-defined headings, each with a T below it. It keeps the
// order of the file.
type Table[T any] struct {
	names []string
	rows  map[string]*T
}

// Names lists the headings in the order of the file.
func (t *Table[T]) Names() []string { return slices.Clone(t.names) }

// Row returns the row of a heading, or nil.
func (t *Table[T]) Row(name string) *T { return t.rows[name] }

func (t *Table[T]) add(name string) {
	if t.rows == nil {
		t.rows = map[string]*T{}
	}
	t.names, t.rows[name] = append(t.names, name), new(T)
}

func (t *Table[T]) row(name string) reflect.Value { return reflect.ValueOf(t.rows[name]).Elem() }

// A table is a Table of any row type.
type table interface {
	Names() []string
	add(name string)
	row(name string) reflect.Value
}

// asTable reports whether a value of a Config is a table.
func asTable(v reflect.Value) (table, bool) {
	t, ok := v.Addr().Interface().(table)
	return t, ok
}

func tablesOf(c *Config) map[string]table {
	found := map[string]table{}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if key, ok := v.Type().Field(i).Tag.Lookup("key"); ok {
			if t, ok := asTable(v.Field(i)); ok {
				found[key] = t
			}
		}
	}
	return found
}

// nameRule is the pattern of headings. A dot would end the key.
const nameRule = `^[A-Za-z][A-Za-z0-9_{}-]*$`

// table fills a table. Every heading adds a row and its keys.
func (l *loader) table(t table, key string, node ast.Node) {
	rule := regexp.MustCompile(nameRule)
	for _, pair := range l.pairs(node, key) {
		name, ok := pair.Key.(*ast.StringNode)
		if !ok {
			l.refuseAt(pair.Key, "key", outline(pair.Key), "not a plain word", "")
			continue
		}
		if !rule.MatchString(name.Value) {
			l.refuseAt(pair.Key, key, name.Value, "not a name of letters, digits, - and _, which begins with a letter", "")
			continue
		}
		t.add(name.Value)
		row := key + "." + name.Value
		l.config.places[row] = l.at(name.GetToken())
		walk(t.row(name.Value), row+".", func(f field) { l.fields = append(l.fields, f) })
		l.group(pair.Value, row+".")
	}
}

// Place returns the position of a key in the file, as file:line:column, or the source of its
// value. With an entry number, from 0, it returns the position of that list entry.
func (c *Config) Place(key string, entry ...int) string {
	for _, i := range entry {
		key = entryKey(key, i)
	}
	if place, ok := c.places[key]; ok {
		return place
	}
	if i := strings.LastIndex(key, "."); i >= 0 {
		return c.Place(key[:i]) // the place of the heading above
	}
	return c.Source(key)
}
