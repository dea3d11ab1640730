package bookfile

import "slices"

// Claim is one lock as the store has it.
type Claim struct {
	Entry
	ID       string // of its grant
	Imported bool   // it is a foreign tool's, taken up from this file
}

// Plan is what a file means for the store, and what it is to hold.
type Plan struct {
	Entries    []Entry // for the file
	New        []Entry // foreign ones that the store does not have yet
	Renewed    []Claim // imported ones, with the new time of their entry
	Ended      []Claim // imported ones whose entry is gone, or is not the newest any more
	Duplicates []Entry // foreign ones that do not count, because a newer one is there
}

// Merge compares what was read from a file with the claims that the store has. What
// is ours is in the file as the store has it, whatever the file said; what is foreign
// is in the store as the file has it. Where nothing is known of the file, because it
// is missing or could not be understood, foreign claims that the store has count as
// if they stood there.
func Merge(read []Entry, known bool, claims []Claim, mark Mark) (p Plan) {
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
		case isOurs || mark.IsOurs(e): // once more, or left from a claim that has ended
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

// apart is what came and what went between two readings.
func apart(before, after []Entry) (came, went []Entry) {
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
