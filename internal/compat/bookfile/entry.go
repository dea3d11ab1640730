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

// An Entry is one lock in the file, with its fields as they are written there.
type Entry struct {
	Resource  string `json:"resource"`
	Timestamp string `json:"timestamp"`
	Instance  string `json:"instance"`
}

// A Lock identifies a lock: entries that differ only in their time are the same lock.
type Lock struct{ Resource, Instance string }

// Lock returns the entry without its time.
func (e Entry) Lock() Lock { return Lock{e.Resource, e.Instance} }

// layouts are the ISO 8601 formats that foreign tools write. A time without a zone is
// local time.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04"}

// Time returns when the lock was acquired. ok is false if the timestamp is invalid.
func (e Entry) Time() (at time.Time, ok bool) {
	text := strings.Replace(strings.TrimSpace(e.Timestamp), " ", "T", 1)
	for _, layout := range layouts {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// A file is the JSON document.
type file struct {
	Locks []Entry `json:"locks"`
}

func Encode(entries []Entry) []byte {
	if entries == nil {
		entries = []Entry{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(file{entries}); err != nil {
		panic(err) // strings always encode
	}
	return b.Bytes()
}

// A CorruptError says why a file is malformed.
type CorruptError struct {
	Reason        string
	OtherDocument bool // a complete JSON document of another kind
}

func (e *CorruptError) Error() string { return "not a locks file: " + e.Reason }

const unknownInstance = "unknown"

// Decode parses the file. With a *CorruptError it returns the entries that are readable.
func Decode(data []byte) ([]Entry, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // some editors write a byte order mark
	var whole struct {
		Locks *[]json.RawMessage `json:"locks"`
	}
	err := json.Unmarshal(data, &whole)
	if err == nil && whole.Locks == nil {
		err = errors.New("the list of locks is missing")
	}
	if err != nil {
		saved := salvage(data)
		return saved, &CorruptError{Reason: err.Error(), OtherDocument: len(saved) == 0 && isOtherDocument(data)}
	}
	entries := make([]Entry, 0, len(*whole.Locks))
	for i, raw := range *whole.Locks {
		e, err := decodeEntry(raw)
		if err != nil {
			return salvage(data), &CorruptError{Reason: fmt.Sprintf("lock %d: %v", i+1, err)}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// isOtherDocument reports whether data is a complete, nonempty JSON document without
// locks.
func isOtherDocument(data []byte) bool {
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

// decodeEntry parses one entry and ignores unknown fields.
func decodeEntry(raw []byte) (e Entry, err error) {
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, err
	}
	if strings.TrimSpace(e.Resource) == "" {
		return e, errors.New("the resource is missing")
	}
	e.Instance = cmp.Or(strings.TrimSpace(e.Instance), unknownInstance)
	return e, nil
}

// maxEntrySize limits entries that salvage finds. A malformed file can be nested deeply,
// and each of its braces is tried.
const maxEntrySize = 2 << 10

// resourceKey matches the key that every entry has.
var resourceKey = regexp.MustCompile(`(?i)"resource"`)

// salvage finds complete entries anywhere in a malformed file. It tries only braces that
// are soon followed by a resource key, because there may be very many others.
func salvage(data []byte) (entries []Entry) {
	keys := resourceKey.FindAllIndex(data, -1)
	for at := 0; ; {
		for len(keys) > 0 && keys[0][0] < at {
			keys = keys[1:]
		}
		if len(keys) == 0 {
			return entries
		}
		at = max(at, keys[0][0]-maxEntrySize)
		brace := bytes.IndexByte(data[at:], '{')
		if brace < 0 {
			return entries
		}
		at += brace
		var raw json.RawMessage
		dec := json.NewDecoder(bytes.NewReader(data[at:min(len(data), at+maxEntrySize)]))
		err := dec.Decode(&raw)
		if e, wrong := decodeEntry(raw); err == nil && wrong == nil {
			entries = append(entries, e)
			at += int(dec.InputOffset())
		} else {
			at++
		}
	}
}

// Newest returns the entry that counts for each resource: the one with the latest time, or
// the last of several with that time. The others are duplicates.
func Newest(entries []Entry) (counts, duplicates []Entry) {
	at := map[string]int{} // index in counts, by resource
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

// A Mark distinguishes Lockkeeper's own entries for one space from foreign ones.
type Mark string

// Stamp returns the timestamp of a Lockkeeper entry: whole seconds, followed by nine
// digits that are a checksum of the entry.
func (m Mark) Stamp(at time.Time, l Lock) string {
	second := at.UTC().Truncate(time.Second)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", m, l.Resource, l.Instance, second.Unix()))
	check := binary.BigEndian.Uint64(sum[:8]) % 1e9
	return second.Format("2006-01-02T15:04:05") + fmt.Sprintf(".%09dZ", check)
}

// IsOurs reports whether Lockkeeper wrote the entry.
func (m Mark) IsOurs(e Entry) bool {
	at, ok := e.Time()
	return ok && m.Stamp(at, e.Lock()) == e.Timestamp
}

// A Claim is one lock in the store.
type Claim struct {
	Entry
	ID       string // ID of the grant that the entry stands for
	Imported bool   // the entry is of a foreign tool and was imported from this file
}

// A Merged is the result of Merge: changes to the store, and the new content of the file.
type Merged struct {
	Entries    []Entry // all entries that the file should have
	New        []Entry // foreign entries that are not in the store
	Renewed    []Claim // imported claims with a new time
	Ended      []Claim // imported claims whose entry is gone or no longer the newest
	Duplicates []Entry // foreign entries superseded by a newer one
}

// Merge compares the entries of a file with the claims of the store. The store decides
// about Lockkeeper's own claims, the file about foreign ones. If known is false, because
// the file is missing or malformed, imported claims count as still in the file.
func Merge(read []Entry, known bool, claims []Claim, mark Mark) (p Merged) {
	ours, imported := map[Lock]Claim{}, map[Lock]Claim{}
	for _, c := range claims {
		if c.Imported {
			imported[c.Lock()] = c
		} else {
			ours[c.Lock()] = c
		}
	}
	var foreign []Entry
	written := map[Lock]bool{}
	for _, e := range read {
		c, isOurs := ours[e.Lock()]
		switch {
		case isOurs && !written[e.Lock()]:
			p.Entries = append(p.Entries, c.Entry)
			written[e.Lock()] = true
		case isOurs || mark.IsOurs(e): // the entry is a duplicate, or a claim that has ended left it
		case slices.Contains(foreign, e):
		default:
			foreign = append(foreign, e)
			p.Entries = append(p.Entries, e)
		}
	}
	for _, c := range claims {
		switch {
		case c.Imported && !known && !slices.ContainsFunc(foreign, func(e Entry) bool { return e.Lock() == c.Lock() }):
			foreign = append(foreign, c.Entry)
			p.Entries = append(p.Entries, c.Entry)
		case !c.Imported && !written[c.Lock()]:
			p.Entries = append(p.Entries, c.Entry)
			written[c.Lock()] = true
		}
	}
	counts, duplicates := Newest(foreign)
	p.Duplicates = duplicates
	stands := map[Lock]bool{}
	for _, e := range counts {
		stands[e.Lock()] = true
		c, has := imported[e.Lock()]
		switch {
		case !has:
			p.New = append(p.New, e)
		case c.Timestamp != e.Timestamp:
			c.Entry = e
			p.Renewed = append(p.Renewed, c)
		}
	}
	for _, c := range claims {
		if c.Imported && !stands[c.Lock()] {
			p.Ended = append(p.Ended, c)
		}
	}
	return p
}

func diff(before, after []Entry) (came, went []Entry) {
	for _, e := range after {
		if !slices.Contains(before, e) {
			came = append(came, e)
		}
	}
	for _, e := range before {
		if !slices.Contains(after, e) {
			went = append(went, e)
		}
	}
	return came, went
}
