package view

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// JSON returns what json.Marshal would, much faster for thousands of grants: unchanged
// grants are encoded once. Callers that share a state share its JSON.
func (s *State) JSON() ([]byte, error) {
	s.once.Do(func() { s.text, s.wrong = s.spell() })
	return s.text, s.wrong
}

// grantsMember marks where the grants belong. No text can contain it, because JSON escapes
// quotes, and no other member of this name is null.
const grantsMember = `"active_grants":null`

func (s *State) spell() ([]byte, error) {
	rest := State{Phase: s.Phase, Error: s.Error, Controllers: s.Controllers, Workflows: s.Workflows, Locks: s.Locks, Cost: s.Cost, Flow: s.Flow, Problems: s.Problems, Moment: s.Moment}
	rest.Locks.ActiveGrants = nil
	text, err := json.Marshal(&rest)
	if err != nil {
		return nil, err
	}
	before, behind := cut(text, grantsMember)
	size := len(text)
	for _, g := range s.spelled {
		if err := g.spell(); err != nil {
			return nil, err
		}
		size += len(g.before) + len(g.behind) + len(",0123456789.123456789")
	}
	out := append(slices.Grow([]byte{}, size), before[:len(before)-len("null")]...)
	out = append(out, '[')
	for i, g := range s.spelled {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, g.before...)
		out = appendNumber(out, s.Locks.ActiveGrants[i].Age)
		out = append(out, g.behind...)
	}
	return append(append(out, ']'), behind...), nil
}

// appendNumber appends a number in the format of encoding/json.
func appendNumber(out []byte, n float64) []byte {
	if n != 0 && (n < 1e-6 || n >= 1e21) {
		text, _ := json.Marshal(n) // cannot fail for a finite number
		return append(out, text...)
	}
	return strconv.AppendFloat(out, n, 'f', -1, 64)
}

// grants caches encoded grants. Of ten thousand most are unchanged, and the store then
// returns the same record.
type grants struct {
	mu    sync.Mutex
	known map[*store.Record]*shownGrant
}

// shownGrant is a grant without its age, which changes with time.
type shownGrant struct {
	snapshot lockkeeper.GrantSnapshot

	once           sync.Once // guards the fields below
	before, behind []byte    // the JSON of the grant before and after its age
	wrong          error
}

// show returns the grants at a moment, and their cached encodings.
func (g *grants) show(records []*store.Record, now time.Time) ([]lockkeeper.GrantSnapshot, []*shownGrant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list, shown := make([]lockkeeper.GrantSnapshot, len(records)), make([]*shownGrant, len(records))
	seen := make(map[*store.Record]*shownGrant, len(records))
	for i, rec := range records {
		is := g.known[rec]
		if is == nil {
			is = &shownGrant{snapshot: rec.Snapshot(now)}
		}
		seen[rec], shown[i], list[i] = is, is, is.snapshot
		list[i].Age = max(0, now.Sub(rec.AcquiredAt).Seconds())
	}
	g.known = seen
	return list, shown
}

// ageMember is the age of a grant in its JSON. Free text cannot contain it, because JSON
// escapes quotes.
const ageMember = `,"age_seconds":0`

// spell encodes the grant, once.
func (g *shownGrant) spell() error {
	g.once.Do(func() {
		ageless := g.snapshot
		ageless.Age = 0
		var text []byte
		if text, g.wrong = json.Marshal(&ageless); g.wrong == nil {
			g.before, g.behind = cut(text, ageMember)
			g.before = g.before[:len(g.before)-len("0")]
		}
	})
	return g.wrong
}

// cut splits text after the first occurrence of member.
func cut(text []byte, member string) (before, behind []byte) {
	at := bytes.Index(text, []byte(member)) + len(member)
	return text[:at:at], text[at:]
}
