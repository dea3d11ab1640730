package bookfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Entry is one lock of the file, with its texts as they are written there.
type Entry struct {
	Resource  string `json:"resource"`
	Timestamp string `json:"timestamp"`
	Instance  string `json:"instance"`
}

// Lock is who has what: entries that differ in their time alone are about one lock.
type Lock struct{ Resource, Instance string }

// Lock is the entry without its time.
func (e Entry) Lock() Lock { return Lock{e.Resource, e.Instance} }

// layouts are the forms of ISO 8601 that tools write. One without a zone is local
// time, as the standard says.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04"}

// Time is when the entry says that the lock was taken; not ok: it does not say so in
// a way that can be read.
func (e Entry) Time() (at time.Time, ok bool) {
	text := strings.Replace(strings.TrimSpace(e.Timestamp), " ", "T", 1)
	for _, layout := range layouts {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// file is the form of the whole file.
type file struct {
	Locks []Entry `json:"locks"`
}

// Encode writes the file in its one form.
func Encode(entries []Entry) []byte {
	if entries == nil {
		entries = []Entry{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(file{entries}); err != nil {
		panic(err) // three texts cannot fail
	}
	return b.Bytes()
}

// CorruptError says why a file is not in its form.
type CorruptError struct {
	Reason string
	Other  bool // it is a whole document of another kind, and was never a list of locks
}

func (e *CorruptError) Error() string { return "not a file of locks: " + e.Reason }

// unknownInstance stands for who an entry does not name.
const unknownInstance = "unknown"

// Decode reads the file. With a *CorruptError come the entries that can be read
// nonetheless.
func Decode(data []byte) ([]Entry, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // some editors begin a file so
	var whole struct {
		Locks *[]json.RawMessage `json:"locks"`
	}
	err := json.Unmarshal(data, &whole)
	if err == nil && whole.Locks == nil {
		err = errors.New("it has no list of locks")
	}
	if err != nil {
		saved := salvage(data)
		return saved, &CorruptError{Reason: err.Error(), Other: len(saved) == 0 && isOther(data)}
	}
	entries := make([]Entry, 0, len(*whole.Locks))
	for i, raw := range *whole.Locks {
		e, err := decodeEntry(raw)
		if err != nil {
			return salvage(data), &CorruptError{Reason: fmt.Sprintf("lock %d of its list: %v", i+1, err)}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// isOther reports whether data is whole JSON that holds something, and no locks.
func isOther(data []byte) bool {
	var document any
	if json.Unmarshal(data, &document) != nil {
		return false
	}
	switch v := document.(type) {
	case map[string]any:
		_, locks := v["locks"]
		return len(v) > 0 && !locks
	case []any:
		return len(v) > 0
	}
	return false
}

// decodeEntry reads one entry. What it has besides the documented fields is passed
// over.
func decodeEntry(raw []byte) (e Entry, err error) {
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, err
	}
	if strings.TrimSpace(e.Resource) == "" {
		return e, errors.New("it names no resource")
	}
	e.Instance = cmp.Or(strings.TrimSpace(e.Instance), unknownInstance)
	return e, nil
}

// longest is how long an entry may be that is found in what is no file of locks. Such a
// file can be nested without end, and is looked through from each of its braces.
const longest = 2 << 10

// resourceKey is what no entry is without.
var resourceKey = regexp.MustCompile(`(?i)"resource"`)

// salvage finds whole entries anywhere in what is no file of locks. It tries only braces
// that the name of a resource follows soon enough: there may be a great many others.
func salvage(data []byte) (entries []Entry) {
	keys := resourceKey.FindAllIndex(data, -1)
	for at := 0; ; {
		for len(keys) > 0 && keys[0][0] < at {
			keys = keys[1:]
		}
		if len(keys) == 0 {
			return entries
		}
		at = max(at, keys[0][0]-longest)
		brace := bytes.IndexByte(data[at:], '{')
		if brace < 0 {
			return entries
		}
		at += brace
		var raw json.RawMessage
		dec := json.NewDecoder(bytes.NewReader(data[at:min(len(data), at+longest)]))
		err := dec.Decode(&raw)
		if e, wrong := decodeEntry(raw); err == nil && wrong == nil {
			entries = append(entries, e)
			at += int(dec.InputOffset())
		} else {
			at++
		}
	}
}

// Newest picks, for each resource, the entry that counts: of several the one with
// the latest time, and of these the last in the file. The others are duplicates.
func Newest(entries []Entry) (counts, duplicates []Entry) {
	at := map[string]int{} // resource to index in counts
	for _, e := range entries {
		i, again := at[e.Resource]
		if !again {
			at[e.Resource] = len(counts)
			counts = append(counts, e)
			continue
		}
		was, _ := counts[i].Time()
		now, _ := e.Time()
		if now.Before(was) {
			duplicates = append(duplicates, e)
		} else {
			duplicates = append(duplicates, counts[i])
			counts[i] = e
		}
	}
	return counts, slices.DeleteFunc(duplicates, func(e Entry) bool { return e.Lock() == counts[at[e.Resource]].Lock() })
}

// Mark tells entries of ours, for one space, from foreign ones.
type Mark string

// Stamp is a time as an entry of ours has it: to the second, with nine digits after
// it that are a check of all else in the entry.
func (m Mark) Stamp(at time.Time, l Lock) string {
	second := at.UTC().Truncate(time.Second)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", m, l.Resource, l.Instance, second.Unix()))
	check := binary.BigEndian.Uint64(sum[:8]) % 1e9
	return second.Format("2006-01-02T15:04:05") + fmt.Sprintf(".%09dZ", check)
}

// IsOurs reports whether an entry was written by us, now or earlier.
func (m Mark) IsOurs(e Entry) bool {
	at, ok := e.Time()
	return ok && m.Stamp(at, e.Lock()) == e.Timestamp
}
