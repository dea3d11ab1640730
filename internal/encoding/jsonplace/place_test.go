package jsonplace

import "testing"

func TestPlaces(t *testing.T) {
	const text = "{\n  \"a\": [1,\n    {\"b c\": \"x\"}]\n}\n"
	for _, c := range []struct {
		place        []string
		line, column int
	}{
		{nil, 1, 1}, {[]string{"a"}, 2, 8}, {[]string{"a", "0"}, 2, 9}, {[]string{"a", "1"}, 3, 5}, {[]string{"a", "1", "b c"}, 3, 13},
	} {
		if line, column := Position([]byte(text), Find([]byte(text), c.place)); line != c.line || column != c.column {
			t.Errorf("%q is at %d:%d, want %d:%d", c.place, line, column, c.line, c.column)
		}
	}
	for n := range len(text) { // the offset in a truncated text stays inside it
		if at := Find([]byte(text[:n]), []string{"a", "1", "b c"}); at < 0 || at > int64(n) {
			t.Errorf("cut at %d: %d", n, at)
		}
	}
	if line, column := Position([]byte("a\nb"), 99); line != 2 || column != 2 {
		t.Errorf("after the end: %d:%d", line, column)
	}
}
