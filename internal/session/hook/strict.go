package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// decodeStrict decodes one JSON object. It refuses keys that are equal or differ only by case,
// because the host may use one of them and this program the other.
func decodeStrict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(errors.New("the input is not a JSON object"), err)
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		key := strings.Map(folded, fmt.Sprint(name))
		if seen[key] {
			return fmt.Errorf("it has %q more than once", name)
		}
		seen[key] = true
	}
	return json.Unmarshal(text, into)
}

// folded returns the same letter for all letters that differ only by case.
func folded(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}
