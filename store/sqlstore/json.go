package sqlstore

import (
	"encoding/json"
	"strings"

	"lockkeeper"
	"lockkeeper/store"
)

// The stored JSON is what encoding/json produces for the types, so that any reader of the tables
// can decode it. Every transaction writes locks and events, so these are encoded and decoded by
// hand: reflection would double the CPU time of a transaction.

func decode(text string, into any) error {
	if text == "" || text == "null" {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}

func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// bodies encodes the parts of a record that are stored as JSON.
func bodies(rec *store.Record) (process, metadata, locks string, err error) {
	if process, err = encode(rec.Process); err != nil {
		return "", "", "", err
	}
	if metadata, err = encode(rec.Metadata); err != nil {
		return "", "", "", err
	}
	return process, metadata, encodeLocks(rec.Locks), nil
}

func encodeLocks(locks []lockkeeper.Lock) string {
	return string(appendLocks(make([]byte, 0, room(locks)), locks))
}

// room estimates how many bytes appendLocks needs.
func room(locks []lockkeeper.Lock) int {
	n := len(`[]`)
	for _, l := range locks {
		n += len(l.Path) + len(`{"path":"","kind":"file","mode":"upgradeable"},`)
	}
	return n
}

func appendLocks(b []byte, locks []lockkeeper.Lock) []byte {
	b = append(b, '[')
	for i, l := range locks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"path":`...)
		b = appendString(b, l.Path)
		b = append(b, `,"kind":"`...)
		b = append(b, l.Kind.String()...)
		b = append(b, `","mode":"`...)
		b = append(b, l.Mode.String()...)
		b = append(b, `"}`...)
	}
	return append(b, ']')
}

func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// decodeLocks parses the output of appendLocks. It leaves any other form, such as a path with
// escapes, to encoding/json.
func decodeLocks(text string) ([]lockkeeper.Lock, error) {
	if strings.IndexByte(text, '\\') < 0 {
		if locks, ok := plainLocks(text); ok {
			return locks, nil
		}
	}
	var locks []lockkeeper.Lock
	err := decode(text, &locks)
	return locks, err
}

func plainLocks(text string) ([]lockkeeper.Lock, bool) {
	locks := make([]lockkeeper.Lock, 0, strings.Count(text, `{"path":"`))
	rest, ok := strings.CutPrefix(text, "[")
	for ok && rest != "]" {
		var path, kind, mode string
		rest = strings.TrimPrefix(rest, ",")
		if rest, ok = strings.CutPrefix(rest, `{"path":"`); !ok {
			break
		}
		path, rest, _ = strings.Cut(rest, `","kind":"`)
		kind, rest, _ = strings.Cut(rest, `","mode":"`)
		mode, rest, ok = strings.Cut(rest, `"}`)
		l := lockkeeper.Lock{Target: lockkeeper.Target{Path: path}}
		ok = ok && l.Kind.UnmarshalText([]byte(kind)) == nil && l.Mode.UnmarshalText([]byte(mode)) == nil
		locks = append(locks, l)
	}
	return locks, ok
}

// encodeEvent encodes the fields of an event that have no column of their own.
func encodeEvent(ev *lockkeeper.Event) (string, error) {
	b := make([]byte, 0, 256+room(ev.Locks))
	b = appendString(append(b, `{"kind":`...), string(ev.Kind))
	b = appendString(append(b, `,"actor":{"name":`...), ev.Actor.Name)
	b = appendString(append(b, `,"kind":`...), string(ev.Actor.Kind))
	b = append(b, '}')
	if ev.GrantID != "" {
		b = appendString(append(b, `,"grant_id":`...), ev.GrantID)
	}
	if ev.Holder != "" {
		b = appendString(append(b, `,"holder":`...), ev.Holder)
	}
	if len(ev.Locks) > 0 {
		b = appendLocks(append(b, `,"locks":`...), ev.Locks)
	}
	if ev.Reason != "" {
		b = appendString(append(b, `,"reason":`...), ev.Reason)
	}
	for _, rare := range []struct {
		name  string
		value any
		there bool
	}{
		{"conflicts", ev.Conflicts, len(ev.Conflicts) > 0},
		{"conditions", ev.Conditions, len(ev.Conditions) > 0},
		{"data", ev.Data, len(ev.Data) > 0},
	} {
		if !rare.there {
			continue
		}
		value, err := json.Marshal(rare.value)
		if err != nil {
			return "", err
		}
		b = append(appendString(append(b, ','), rare.name), ':')
		b = append(b, value...)
	}
	return string(append(b, '}')), nil
}
