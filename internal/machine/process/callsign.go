package process

import (
	"crypto/sha256"
	_ "embed" // the word list
	"encoding/binary"
	"fmt"
	"strings"
)

//go:embed animals.txt
var animals string

// Callsign returns a short name that people can say and remember, such as otter or
// heron-27. Equal seeds have equal callsigns. Different seeds rarely share one, so a
// callsign names a holder and proves nothing.
func Callsign(seed string) string {
	words := strings.Fields(animals)
	sum := sha256.Sum256([]byte(seed))
	word := words[binary.BigEndian.Uint64(sum[:8])%uint64(len(words))]
	if n := binary.BigEndian.Uint64(sum[8:16])%99 + 1; n > 1 {
		return fmt.Sprintf("%s-%d", word, n)
	}
	return word
}
