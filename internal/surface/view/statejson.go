package view

import (
	"encoding/json"
	"slices"
	"strconv"
)

// JSON is the state as encoding/json spells it, and much faster where there are thousands
// of grants: those that are as they were are not spelled anew. All who share a state share
// its JSON, too.
func (s *State) JSON() ([]byte, error) {
	s.once.Do(func() { s.text, s.wrong = s.spell() })
	return s.text, s.wrong
}

// grantsMember stands before the grants. In JSON no text has a quote without a backslash
// before it, and no other member with this name is null.
const grantsMember = `"active_grants":null`

func (s *State) spell() ([]byte, error) {
	rest := State{Phase: s.Phase, Controllers: s.Controllers, Workflows: s.Workflows, Locks: s.Locks, Cost: s.Cost, Flow: s.Flow, Problems: s.Problems, Moment: s.Moment}
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

// appendNumber appends a number as encoding/json spells it.
func appendNumber(out []byte, n float64) []byte {
	if n != 0 && (n < 1e-6 || n >= 1e21) {
		text, _ := json.Marshal(n) // which spells every number, and ages are numbers
		return append(out, text...)
	}
	return strconv.AppendFloat(out, n, 'f', -1, 64)
}
