package bookfile

import "slices"

// A Claim is one lock in the store.
type Claim struct {
	Entry
	ID       string // of its grant
	Imported bool   // of a foreign tool, imported from this file
}

// A Merged is the result of Merge: changes to the store, and the new content of the file.
type Merged struct {
	Entries    []Entry // for the file
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
		case isOurs || mark.IsOurs(e): // a duplicate, or left from a claim that has ended
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

// diff returns the entries that were added and removed between two readings.
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
