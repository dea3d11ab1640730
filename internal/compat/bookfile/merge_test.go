package bookfile_test

import (
	"slices"
	"testing"
	"time"

	"lockkeeper/internal/compat/bookfile"
)

var (
	began     = time.Date(2025, 11, 22, 10, 30, 0, 0, time.UTC)
	mine      = claimOf("Chapter_03", "CLI-1", began)
	theirs    = entry("Chapter_07", "2025-11-22T10:20:00Z", "CLI-99")
	imported  = bookfile.Claim{Entry: theirs, ID: "imported", Imported: true}
	collision = entry("Chapter_03", "2025-11-22T10:40:00Z", "CLI-66")
)

func claimOf(resource, instance string, at time.Time) bookfile.Claim {
	l := bookfile.Lock{Resource: resource, Instance: instance}
	return bookfile.Claim{ID: "ours", Entry: entry(resource, mark.Stamp(at, l), instance)}
}

// shows: LM-41 LM-42 CF-39 CF-40
func TestMerge(t *testing.T) {
	type entries = []bookfile.Entry
	type claims = []bookfile.Claim
	renewed := entry("Chapter_07", "2025-11-22T10:35:00Z", "CLI-99")
	newer := entry("Chapter_07", "2025-11-22T10:36:00Z", "CLI-98")
	reformatted := entry("Chapter_03", "2025-11-22T10:30:00Z", "CLI-1")
	for _, c := range []struct {
		name    string
		read    entries
		unknown bool
		claims  claims
		want    bookfile.Merged
	}{
		{name: "nothing"},
		{name: "ours is written", claims: claims{mine}, want: bookfile.Merged{Entries: entries{mine.Entry}}},
		{name: "ours is there", read: entries{mine.Entry}, claims: claims{mine}, want: bookfile.Merged{Entries: entries{mine.Entry}}},
		{name: "ours has ended", read: entries{mine.Entry}},
		{name: "a foreign tool reformatted our time", read: entries{reformatted}, claims: claims{mine}, want: bookfile.Merged{Entries: entries{mine.Entry}}},
		{name: "ours stands there twice", read: entries{mine.Entry, reformatted}, claims: claims{mine}, want: bookfile.Merged{Entries: entries{mine.Entry}}},
		{name: "a foreign one comes", read: entries{theirs}, want: bookfile.Merged{Entries: entries{theirs}, New: entries{theirs}}},
		{name: "a foreign one stays", read: entries{theirs}, claims: claims{imported}, want: bookfile.Merged{Entries: entries{theirs}}},
		{name: "a foreign one goes", claims: claims{imported}, want: bookfile.Merged{Ended: claims{imported}}},
		{name: "a foreign one is renewed", read: entries{renewed}, claims: claims{imported},
			want: bookfile.Merged{Entries: entries{renewed}, Renewed: claims{{Entry: renewed, ID: "imported", Imported: true}}}},
		{name: "everything is cleared by a foreign tool", claims: claims{mine, imported}, want: bookfile.Merged{Entries: entries{mine.Entry}, Ended: claims{imported}}},
		{name: "the file is gone", unknown: true, claims: claims{mine, imported}, want: bookfile.Merged{Entries: entries{mine.Entry, theirs}}},
		{name: "a foreign tool overrides ours", read: entries{collision}, claims: claims{mine},
			want: bookfile.Merged{Entries: entries{collision, mine.Entry}, New: entries{collision}}},
		{name: "a foreign tool overrides a foreign one beside it", read: entries{theirs, newer}, claims: claims{imported},
			want: bookfile.Merged{Entries: entries{theirs, newer}, New: entries{newer}, Ended: claims{imported}, Duplicates: entries{theirs}}},
		{name: "an older one beside a foreign one", read: entries{newer, theirs}, claims: claims{{Entry: newer, ID: "imported", Imported: true}},
			want: bookfile.Merged{Entries: entries{newer, theirs}, Duplicates: entries{theirs}}},
		{name: "the same twice", read: entries{theirs, theirs}, claims: claims{imported}, want: bookfile.Merged{Entries: entries{theirs}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := bookfile.Merge(c.read, !c.unknown, c.claims, mark)
			if !slices.Equal(got.Entries, c.want.Entries) || !slices.Equal(got.New, c.want.New) || !slices.Equal(got.Renewed, c.want.Renewed) ||
				!slices.Equal(got.Ended, c.want.Ended) || !slices.Equal(got.Duplicates, c.want.Duplicates) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			again := bookfile.Merge(got.Entries, true, c.claims, mark)
			if !slices.Equal(again.Entries, got.Entries) {
				t.Errorf("a second merge gives %+v", again.Entries)
			}
		})
	}
}
