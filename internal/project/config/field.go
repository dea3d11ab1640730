package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
	"lockkeeper/internal/project/protect"
)

// A field is one value of a Config, with its rules.
type field struct {
	key     string // dotted, as in events.retention
	also    string // a second name in the file; empty: none
	env     string
	tag     reflect.StructTag
	initial string // the default; empty: none
	rails   string // the default for a codebase of the layout rails; empty: the usual default
	example string // an example for the sample if there is no default; empty: none
	enum    []string
	form    string // pattern of a text, or of each list entry; empty: any
	isPath  bool   // each text is a path below the root
	noneOK  bool   // a list may be empty
	min     int64  // least value of a number or duration, inclusive
	max     int64
	value   reflect.Value // the field in its Config, settable
}

// fieldsOf lists the values of c in the order of the struct, and entries of maps by name.
func fieldsOf(c *Config) []field {
	fields := make([]field, 0, 48)
	walk(reflect.ValueOf(c).Elem(), "", func(f field) { fields = append(fields, f) })
	return fields
}

func walk(v reflect.Value, prefix string, visit func(field)) {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name, ok := tag.Lookup("key")
		if !ok {
			continue
		}
		key, value := prefix+name, v.Field(i)
		switch value.Kind() {
		case reflect.Struct:
			t, ok := asTable(value)
			if !ok {
				walk(value, key+".", visit)
				continue
			}
			for _, row := range t.Names() {
				walk(t.row(row), key+"."+row+".", visit)
			}
		case reflect.Map:
			entries := value.Interface().(map[string]*Lease)
			for _, entry := range slices.Sorted(maps.Keys(entries)) {
				walk(reflect.ValueOf(entries[entry]).Elem(), key+"."+entry+".", visit)
			}
		default:
			visit(newField(key, value, tag))
		}
	}
}

// groupDoc returns the doc of a top-level group.
func groupDoc(name string) string {
	for i := range reflect.TypeFor[Config]().NumField() {
		if tag := reflect.TypeFor[Config]().Field(i).Tag; tag.Get("key") == name {
			return tag.Get("doc")
		}
	}
	return ""
}

func newField(key string, value reflect.Value, all reflect.StructTag) field {
	// Each lookup reads the tag up to the name. The description, which comes last, is most of it.
	rules, _, _ := strings.Cut(string(all), " doc:")
	tag := reflect.StructTag(rules)
	f := field{key: key, tag: all, also: tag.Get("also"), env: tag.Get("env"), initial: tag.Get("default"), rails: tag.Get("rails"), example: tag.Get("example"), form: tag.Get("pattern"), isPath: tag.Get("is") == "path", noneOK: tag.Get("none") == "ok", value: value, min: math.MinInt64, max: math.MaxInt64}
	if enum := tag.Get("enum"); enum != "" {
		if f.enum = strings.Fields(enum); enum == "AGENTS" {
			f.enum = program.Names()
		}
		f.example = f.enum[0]
	}
	limit := func(text string, into *int64) {
		n, err := f.number(text)
		if err != nil {
			panic(fmt.Sprintf("config: limit %q of %s: %v", text, key, err))
		}
		*into = n
	}
	if f.value.CanInt() {
		limit(tag.Get("min"), &f.min)
		limit(tag.Get("max"), &f.max)
	}
	return f
}

// doc returns the description of the field.
func (f field) doc() string { return f.tag.Get("doc") }

func (f field) isList() bool     { return f.value.Kind() == reflect.Slice }
func (f field) isDuration() bool { return f.value.Type() == reflect.TypeFor[time.Duration]() }

// flag returns the name of the flag that sets the field.
func (f field) flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(f.key) }

// number parses a number or duration.
func (f field) number(text string) (int64, error) {
	if f.isDuration() {
		d, err := ParseDuration(text)
		return int64(d), err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("not a whole number")
	}
	return n, nil
}

// set parses text and sets the field. List entries are separated by commas.
func (f field) set(text string) error {
	switch {
	case f.isList():
		list := strings.Split(text, ",")
		for i, entry := range list {
			list[i] = strings.TrimSpace(entry)
			if err := f.checkText(list[i]); err != nil {
				return fmt.Errorf("entry %d is %w", i+1, err)
			}
		}
		f.setList(list)
		return nil
	case f.value.Kind() == reflect.String:
		if err := f.checkText(text); err != nil {
			return err
		}
		f.value.SetString(text)
		return nil
	}
	n, err := f.number(text)
	if err != nil {
		return err
	}
	if n < f.min || n > f.max {
		nearest := f.format(f.min) + " or more"
		if n > f.max {
			nearest = f.format(f.max) + " or less"
		}
		return lockkeeper.WithNext(fmt.Errorf("out of range, must be %s to %s", f.format(f.min), f.format(f.max)), "set it to "+nearest)
	}
	f.value.SetInt(n)
	return nil
}

// setList sets a list of checked texts.
func (f field) setList(list []string) { f.value.Set(reflect.ValueOf(list)) }

// checkText checks a text, or one list entry.
func (f field) checkText(text string) error {
	if f.enum != nil && !slices.Contains(f.enum, text) {
		return fmt.Errorf("must be %s", strings.Join(f.enum, " or "))
	}
	switch {
	case f.form != "" && !regexp.MustCompile(f.form).MatchString(text):
		return fmt.Errorf("not of the form %s", f.form)
	case f.key == "store":
		return checkStore(text)
	case f.key == "locks_file":
		return checkLocksFile(text)
	case f.isPath:
		return checkBelowRoot(text)
	}
	return nil
}

// checkLocksFile refuses a path that is not for a lock file, because the file there is replaced.
func checkLocksFile(name string) error {
	if err := checkBelowRoot(name); err != nil {
		return err
	}
	if kept, is := protect.HasReserved(name); is {
		return fmt.Errorf("the locks file cannot be %s or below it; use a name such as .locks/locks.json", kept)
	}
	if !strings.HasSuffix(name, ".json") {
		return errors.New("does not end in .json; use a name such as .locks/locks.json")
	}
	return nil
}

// checkBelowRoot refuses a path that may be outside of the root.
func checkBelowRoot(path string) error {
	switch {
	case path == "":
		return errors.New("empty")
	case strings.HasPrefix(path, "/"):
		return errors.New("not relative to the root")
	case slices.Contains(strings.Split(path, "/"), ".."):
		return errors.New("a path with .., which may lead out of the root")
	case strings.ContainsFunc(path, unicode.IsControl):
		return errors.New("a path with a control character")
	}
	return nil
}

func (f field) format(n int64) string {
	if f.isDuration() {
		return formatDuration(time.Duration(n))
	}
	return strconv.FormatInt(n, 10)
}

// shown returns the value for people, with passwords hidden.
func (f field) shown() string {
	switch {
	case f.isList():
		return strings.Join(f.value.Interface().([]string), ", ")
	case f.value.Kind() == reflect.String:
		return f.hide(f.value.String())
	}
	return f.format(f.value.Int())
}

// allowed describes the allowed values; empty: any text.
func (f field) allowed() string {
	switch {
	case f.enum != nil:
		return strings.Join(f.enum, ", ")
	case f.value.CanInt():
		return f.format(f.min) + " to " + f.format(f.max)
	}
	return ""
}

// hide removes secrets from a value of this field.
func (f field) hide(text string) string {
	switch {
	case f.key == "store":
		return Redact(text)
	case f.key == "serve.webhook" && text != "":
		return redactWebhook(text)
	}
	return text
}
