package sandbox

import (
	"fmt"
	"strings"

	"lockkeeper"
)

// Mode is what a person asks for.
type Mode string

// The modes.
const (
	Prefer  Mode = "prefer"  // what this machine can do
	Require Mode = "require" // all reads and writes of files held, or nothing runs
	Off     Mode = "off"
)

// truncates is the first version of Landlock that denies truncating a file.
const truncates = 3

// scopes is the first version of Landlock that denies signals to the outside.
const scopes = 6

// Level is what confines a command. The zero Level confines nothing.
type Level struct {
	Landlock   int  // the version of its interface, 0: none
	Namespaces bool // processes, and a root with nothing in it but what is named
	User       bool // the namespaces are made by an ordinary user, in a user namespace

	Missing string // why there is not more, for people
}

// On says whether a command is confined at all.
func (l Level) On() bool { return l.Landlock > 0 || l.Namespaces }

// HoldsWrites says that a command changes the content of no file, and the
// entries of no directory, but of those it may write.
func (l Level) HoldsWrites() bool { return l.Landlock >= truncates || l.Namespaces }

// HoldsAttributes says that modes, times, owners and extended attributes of
// other files are held as well, which Landlock cannot do.
func (l Level) HoldsAttributes() bool { return l.Namespaces }

// HoldsReads says that a command reads no file and lists no directory that is not
// named, nor is the system's own.
func (l Level) HoldsReads() bool { return l.Landlock > 0 || l.Namespaces }

// Hides says that what is not named is not there at all. Landlock alone shows
// names, sizes and times of all files, and lets a command connect to sockets.
func (l Level) Hides() bool { return l.Namespaces }

// EndsWhole says that whatever a command leaves behind ends with it, and all of
// it with the supervisor.
func (l Level) EndsWhole() bool { return l.Namespaces }

// String says for people what holds.
func (l Level) String() string {
	var parts []string
	if l.Landlock > 0 {
		parts = append(parts, fmt.Sprintf("landlock v%d", l.Landlock))
	}
	if l.Namespaces {
		parts = append(parts, "own processes", "only what is named can be seen")
	} else if l.On() {
		parts = append(parts, "only what is named can be read", "sockets can be reached")
	}
	if !l.On() {
		parts = append(parts, "none")
	}
	if !l.HoldsWrites() && l.On() {
		parts = append(parts, "other files can be truncated")
	}
	return strings.Join(parts, ", ")
}

// Choose takes what the mode asks of what the machine can do, as Probe found
// it. Under Require a machine that cannot hold reads and writes of files is
// refused; under Prefer the caller says what the Level lacks.
func Choose(mode Mode, machine Level) (Level, error) {
	switch mode {
	case Off:
		return Level{Missing: "switched off"}, nil
	case Prefer:
		return machine, nil
	case Require:
		if machine.HoldsWrites() && machine.HoldsReads() {
			return machine, nil
		}
		return Level{}, &lockkeeper.RefusedError{Act: "running without a sandbox",
			Reason: fmt.Sprintf("one is required, and this machine offers: %s (%s)", machine, machine.Missing),
			Next:   "use Linux 6.2 or later with Landlock (lsm=…,landlock), or permit user namespaces, or set sandbox to prefer and trust the commands"}
	}
	return Level{}, &lockkeeper.InputError{Field: "sandbox", Value: string(mode), Reason: "unknown", Next: "use prefer, require or off"}
}
