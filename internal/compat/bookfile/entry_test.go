package bookfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/compat/bookfile"
)

// documented is the documented example, formatted.
const documented = `{
  "locks": [
    {
      "resource": "Chapter_03",
      "timestamp": "2025-11-22T10:30:00Z",
      "instance": "CLI-12345"
    },
    {
      "resource": "StyleSystem",
      "timestamp": "2025-11-22T10:32:00Z",
      "instance": "Desktop-67890"
    }
  ]
}
`

var example = []bookfile.Entry{
	entry("Chapter_03", "2025-11-22T10:30:00Z", "CLI-12345"),
	entry("StyleSystem", "2025-11-22T10:32:00Z", "Desktop-67890"),
}

// shows: LM-5 LM-13
func TestFormIsTheDocumentedOne(t *testing.T) {
	got, err := bookfile.Decode([]byte(documented))
	if err != nil || !slices.Equal(got, example) {
		t.Errorf("read %v, %v", got, err)
	}
	if text := bookfile.Encode(example); string(text) != documented {
		t.Errorf("wrote\n%s", text)
	}
	if text := bookfile.Encode(nil); string(text) != "{\n  \"locks\": []\n}\n" {
		t.Errorf("wrote %s", text)
	}
	for _, spelling := range []string{`{"locks":[]}`, "\xef\xbb\xbf{\"locks\": []}", "{\r\n\"locks\": []\r\n}"} {
		if got, err := bookfile.Decode([]byte(spelling)); err != nil || len(got) != 0 {
			t.Errorf("%q is %v, %v", spelling, got, err)
		}
	}
}

func TestTimesAsToolsWriteThem(t *testing.T) {
	want := time.Date(2025, 11, 22, 10, 30, 0, 0, time.UTC)
	for _, text := range []string{
		"2025-11-22T10:30:00Z", "2025-11-22T10:30:00.000Z", "2025-11-22T10:30:00.000000+00:00",
		"2025-11-22T12:30:00+02:00", "2025-11-22T12:30:00+0200", "2025-11-22T10:30Z", "2025-11-22 10:30:00Z",
		want.Local().Format("2006-01-02T15:04:05"), want.Local().Format("2006-01-02T15:04:05.000000"),
	} {
		if got, ok := entry("r", text, "i").Time(); !ok || !got.Equal(want) {
			t.Errorf("%s is %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "yesterday", "10:30", "1763807400"} {
		if got, ok := entry("r", text, "i").Time(); ok {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// A truncated file is corrupt, and all its complete entries are salvaged.
//
// shows: LM-39 CF-38
func TestCutOffAnywhere(t *testing.T) {
	whole := strings.TrimSuffix(documented, "\n")
	first := strings.Index(whole, "},") + 1
	second := first + strings.Index(whole[first:], "}") + 1
	for n := range len(whole) {
		got, err := bookfile.Decode([]byte(whole[:n]))
		var corrupt *bookfile.CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		want := example[:0]
		switch {
		case n >= second:
			want = example
		case n >= first:
			want = example[:1]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d bytes: saved %v", n, got)
		}
	}
}

func TestWrongInForm(t *testing.T) {
	for text, saved := range map[string]int{
		`[]`: 0, `null`: 0, `{}`: 0, `{"locks": {}}`: 0, `{"locks": null}`: 0, `"locks"`: 0, ``: 0,
		`{"locks": [{"resource": 3, "timestamp": "", "instance": ""}, {"resource": "A", "timestamp": "x", "instance": "i"}]}`: 1,
		`{"locks": [{"timestamp": "2025-11-22T10:30:00Z"}, {"resource": "A"}]}`:                                               1,
		`{"locks": [{"resource": "A", "instance": "i"}] trailing`:                                                             1,
		`[{"resource": "A"}, {"resource": "B"}]`:                                                                              2,
		"<<<<<<< HEAD\n" + documented + "=======\n" + documented + ">>>>>>> other\n":                                          4,
	} {
		got, err := bookfile.Decode([]byte(text))
		var corrupt *bookfile.CorruptError
		if !errors.As(err, &corrupt) || len(got) != saved {
			t.Errorf("%s: saved %v, %v", text, got, err)
		}
	}
}

func TestNoise(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2_000 {
		text := []byte(documented)
		for range 1 + random.IntN(8) {
			text[random.IntN(len(text))] = byte(random.IntN(256))
		}
		entries, err := bookfile.Decode(text)
		for _, e := range entries {
			if e.Resource == "" || e.Instance == "" {
				t.Fatalf("%q gave %v, %v", text, e, err)
			}
		}
		if again := bookfile.Encode(entries); !json.Valid(again) {
			t.Fatalf("%q became %q", text, again)
		}
	}
	if entries, err := bookfile.Decode(bytes.Repeat([]byte("{"), 5_000)); err == nil || entries != nil {
		t.Errorf("braces alone gave %v, %v", entries, err)
	}
}

// A deeply nested file is searched quickly, and an entry after it is found.
//
// shows: CF-38
func TestNestedNoise(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 9_900) + "1" + strings.Repeat("}", 9_900)
	began := time.Now()
	entries, err := bookfile.Decode([]byte(deep + deep + documented))
	if took := time.Since(began); err == nil || !slices.Equal(entries, example) || took > 2*time.Minute {
		t.Errorf("found %v, %v in %s", entries, err, took)
	}
}

// shows: LM-41
func TestNewestCounts(t *testing.T) {
	older := entry("A", "2025-11-22T10:30:00Z", "CLI-1")
	newer := entry("A", "2025-11-22T10:31:00Z", "CLI-2")
	timeless := entry("A", "soon", "CLI-3")
	other := entry("B", "2025-11-22T10:00:00Z", "CLI-1")
	for _, order := range [][]bookfile.Entry{{older, newer, other, timeless}, {timeless, other, newer, older}} {
		counts, duplicates := bookfile.Newest(order)
		if len(counts) != 2 || !slices.Contains(counts, newer) || !slices.Contains(counts, other) || len(duplicates) != 2 {
			t.Errorf("%v: %v count, %v do not", order, counts, duplicates)
		}
	}
	renewed := entry("A", "2025-11-22T10:32:00Z", "CLI-1")
	if counts, duplicates := bookfile.Newest([]bookfile.Entry{older, renewed}); len(counts) != 1 || counts[0] != renewed || len(duplicates) != 0 {
		t.Errorf("a renewed entry: %v, %v", counts, duplicates)
	}
}

func TestOursAreKnownByThemselves(t *testing.T) {
	at := time.Date(2025, 11, 22, 10, 30, 0, 123, time.UTC)
	lock := bookfile.Lock{Resource: "Chapter_03", Instance: "CLI-1"}
	ours := entry(lock.Resource, mark.Stamp(at, lock), lock.Instance)
	if got, ok := ours.Time(); !ok || got.Sub(at).Abs() > time.Second {
		t.Errorf("%s is %v, %v", ours.Timestamp, got, ok)
	}
	if !mark.IsOurs(ours) {
		t.Errorf("%v is not recognized", ours)
	}
	for _, foreign := range []bookfile.Entry{
		entry("Chapter_04", ours.Timestamp, ours.Instance), entry(ours.Resource, ours.Timestamp, "CLI-2"),
		entry(ours.Resource, "2025-11-22T10:30:00Z", ours.Instance), entry(ours.Resource, "", ours.Instance),
	} {
		if mark.IsOurs(foreign) {
			t.Errorf("%v is taken for ours", foreign)
		}
	}
	if bookfile.Mark("elsewhere").IsOurs(ours) {
		t.Error("another space recognizes it")
	}
}
