package jsonplace

import (
	"bytes"
	"encoding/json"
	"strconv"
)

func Position(text []byte, offset int64) (line, column int) {
	before := text[:min(max(offset, 0), int64(len(text)))]
	return 1 + bytes.Count(before, []byte{'\n'}), len(before) - bytes.LastIndexByte(before, '\n')
}

// Find returns the offset of the value at a path. A path is the names of members and the
// indexes of elements from the root.
func Find(text []byte, path []string) int64 {
	d := json.NewDecoder(bytes.NewReader(text))
	for _, want := range path {
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
