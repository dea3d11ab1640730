package jsonplace

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Position is the line and the column of an offset.
func Position(text []byte, offset int64) (line, column int) {
	before := text[:min(max(offset, 0), int64(len(text)))]
	return 1 + bytes.Count(before, []byte{'\n'}), len(before) - bytes.LastIndexByte(before, '\n')
}

// Find is the offset at which the value at a place begins. A place is the names of members
// and the numbers of elements that lead there.
func Find(text []byte, place []string) int64 {
	d := json.NewDecoder(bytes.NewReader(text))
	for _, want := range place {
		open, err := d.Token()
		if err != nil {
			return 0
		}
		for n := 0; d.More(); n++ {
			name := strconv.Itoa(n)
			if open == json.Delim('{') {
				key, err := d.Token()
				if err != nil {
					return 0
				}
				name, _ = key.(string)
			}
			if name == want {
				break
			}
			var other json.RawMessage
			if d.Decode(&other) != nil {
				return 0
			}
		}
	}
	at := d.InputOffset()
	return at + int64(len(text[at:])-len(bytes.TrimLeft(text[at:], " \t\r\n,:")))
}
