package bookfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockkeeper/durable"
)

// A lateDisk lets a foreign tool write once, at the last moment before the file is
// replaced.
type lateDisk struct {
	durable.OSDisk
	foreign func() error
}

func (d *lateDisk) Exchange(a *os.File, name string, b *os.File, as string) error {
	if foreign := d.foreign; foreign != nil {
		d.foreign = nil
		if err := foreign(); err != nil {
			return err
		}
	}
	return d.OSDisk.Exchange(a, name, b, as)
}

// A foreign write that was replaced is restored before change is called.
//
// shows: LM-42 LM-51 CF-39
func TestWhatWasReplacedIsPutBack(t *testing.T) {
	before := Entry{"Chapter_01", "2025-11-22T10:30:00Z", "CLI-1"}
	added := Entry{"Chapter_02", "2025-11-22T10:31:00Z", "CLI-2"}
	ours := Entry{"Chapter_03", "2025-11-22T10:32:00Z", "CLI-3"}
	for name, c := range map[string]struct {
		writes       []byte
		has, not     []Entry
		backups      int
		moreModified time.Duration
	}{
		"one came and one went": {writes: Encode([]Entry{added}), has: []Entry{added, ours}, not: []Entry{before}},
		"all were cleared":      {writes: Encode(nil), has: []Entry{ours}, not: []Entry{before}},
		"it was not finished":   {writes: bytes.TrimSuffix(Encode([]Entry{added}), []byte("]\n}\n")), has: []Entry{before, added, ours}, backups: 1, moreModified: -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := Open(t.TempDir(), "locks.json")
			if err := os.WriteFile(f.Path(), Encode([]Entry{before}), filePerm); err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(c.moreModified)
			f.disk = &lateDisk{foreign: func() error {
				return errors.Join(os.WriteFile(f.Path(), c.writes, filePerm), os.Chtimes(f.Path(), at, at))
			}}
			corrupt := false
			err := f.Update(t.Context(), func(r Reading) ([]Entry, error) {
				text, err := os.ReadFile(f.Path())
				if err != nil {
					return nil, err
				}
				there, err := Decode(text)
				for _, e := range r.Entries {
					if !slices.Contains(there, e) {
						t.Errorf("change was called with %v, but the file has %v", e, there)
					}
				}
				corrupt = corrupt || r.Corrupt != nil
				return append(slices.DeleteFunc(slices.Clone(r.Entries), func(e Entry) bool { return e == ours }), ours), err
			})
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(f.Path())
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(text)
			for _, e := range c.has {
				if !slices.Contains(got, e) {
					t.Errorf("%v is missing: %v, %v", e, got, err)
				}
			}
			for _, e := range c.not {
				if slices.Contains(got, e) {
					t.Errorf("%v was restored: %v", e, got)
				}
			}
			backups, err := filepath.Glob(f.Path() + ".corrupt.*")
			if err != nil || len(backups) != c.backups || corrupt != (c.backups > 0) {
				t.Errorf("backups: %v, %v", backups, err)
			}
		})
	}
}
