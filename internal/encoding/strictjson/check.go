package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An AmbiguousError reports why a text can be read in more than one way.
type AmbiguousError struct {
	Field  string // the path of a member; empty: the text as a whole
	Reason string
}

func (e *AmbiguousError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// Check returns an *AmbiguousError for a text that is not UTF-8 or has half of a surrogate pair.
// It also does so for an object with two members of one name. It does not report other invalid
// JSON.
func Check(text []byte) error { return check(text, nil) }

// check does the same as Check. If t is not nil, it also compares the names of members with the
// fields of the type.
func check(text []byte, t reflect.Type) error {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return &AmbiguousError{Reason: fmt.Sprintf("not JSON: byte %d is not UTF-8", at)}
		}
		at += size
	}
	if at := halfSurrogate(text); at >= 0 {
		return &AmbiguousError{Reason: fmt.Sprintf("the escape at byte %d is half of a character", at)}
	}
	if !json.Valid(text) {
		return nil // the decoder reports invalid JSON, and the walk needs valid JSON, which bounds its depth
	}
	return (&walk{json.NewDecoder(bytes.NewReader(text))}).value(t, nil)
}

// halfSurrogate finds an escape such as \ud800 without its other half, or returns -1.
func halfSurrogate(text []byte) int {
	for at := 0; ; {
		next := bytes.IndexByte(text[at:], '\\')
		if next < 0 {
			return -1
		}
		at += next
		switch r := escaped(text[at:]); {
		case !utf16.IsSurrogate(r):
			at = min(at+2, len(text))
		case utf16.DecodeRune(r, escaped(text[at+6:])) == utf8.RuneError:
			return at
		default:
			at += 12
		}
	}
}

// escaped returns the code unit of an escape such as \ud800 at the start of a text, or 0.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // 0 if the text is not a number
	return rune(n)
}

// A walk is one pass over valid JSON.
type walk struct{ *json.Decoder }

// value checks the next value, which will be decoded into a t. If t is nil, any type is possible.
func (w *walk) value(t reflect.Type, path []string) error {
	open, err := w.Token()
	if err != nil {
		return err
	}
	switch open {
	case json.Delim('{'):
		err = w.object(shapeOf(t), path)
	case json.Delim('['):
		err = w.list(shapeOf(t), path)
	default:
		return nil
	}
	if err == nil {
		_, err = w.Token() // reads the closing delimiter
	}
	return err
}

func (w *walk) list(s shape, path []string) error {
	for n := 0; w.More(); n++ {
		if err := w.value(s.elem, append(path, strconv.Itoa(n))); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) object(s shape, path []string) error {
	seen := map[string]bool{}
	for w.More() {
		token, err := w.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		at := append(path, name)
		if seen[name] {
			return &AmbiguousError{Field: strings.Join(at, "."), Reason: "it is given more than once"}
		}
		seen[name] = true
		t, err := s.member(name, at)
		if err != nil {
			return err
		}
		if err := w.value(t, at); err != nil {
			return err
		}
	}
	return nil
}
