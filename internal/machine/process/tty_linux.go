package process

import (
	"crypto/sha256"
	_ "embed" // the word list
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Terminal returns the name of this process's controlling terminal, such as pts/3, or "" if it
// has none.
func Terminal() string {
	s, _ := readStat(os.Getpid())
	return terminalName(s.tty)
}

// terminalName returns the name of a terminal, or "" for device 0.
func terminalName(device uint64) string {
	if device == 0 {
		return ""
	}
	major, minor := device>>8&0xfff, device&0xff|device>>12&0xfff00
	if major >= 136 && major <= 143 { // pseudo-terminals, which sysfs does not list
		return fmt.Sprintf("pts/%d", minor)
	}
	if link, err := os.Readlink(fmt.Sprintf("/sys/dev/char/%d:%d", major, minor)); err == nil {
		return filepath.Base(link)
	}
	return fmt.Sprintf("tty-%d:%d", major, minor)
}

// Holder returns the callsign of a caller without a name: the same for all commands of one
// terminal session, or else of one parent process.
func Holder() (string, error) {
	self, err := Self()
	if err != nil {
		return "", err
	}
	s, err := readStat(self.PID)
	if err != nil {
		return "", err
	}
	kind, anchor := "parent", s.parent
	if s.tty != 0 {
		kind, anchor = "terminal "+terminalName(s.tty), s.session
	}
	a, err := readStat(anchor)
	if err != nil && !errors.Is(err, errGone) {
		return "", err
	}
	return Callsign(fmt.Sprintf("%s %s %s %d %d", self.Boot, self.PIDNS, kind, anchor, a.start)), nil
}

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
