package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
