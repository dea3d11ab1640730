package sandbox

import (
	"fmt"
	"strings"

	"lockkeeper"
)

// A Mode is a setting for the sandbox in the configuration.
type Mode string

// The modes of the sandbox.
const (
	Prefer  Mode = "prefer"  // use the best level that this machine supports
	Require Mode = "require" // run nothing unless reads and writes of other files are denied
	Off     Mode = "off"
)

// truncates is the first version of Landlock that denies truncating a file.
const truncates = 3

// scopes is the first version of Landlock that denies signals to the outside.
const scopes = 6

// A Level lists the mechanisms by which a command is confined. The zero Level confines nothing.
type Level struct {
	Landlock   int  // the version of Landlock's interface; 0: none
	Namespaces bool // own processes, which end with the command, and a root with only the listed paths
	User       bool // the namespaces are in a user namespace, as for an ordinary user

	Missing string // why no higher level works, for people
}

// On reports whether a command is confined at all.
func (l Level) On() bool { return l.Landlock > 0 || l.Namespaces }

// HoldsWrites reports whether a command can change the content of files, and the
// entries of directories, only where it may write.
func (l Level) HoldsWrites() bool { return l.Landlock >= truncates || l.Namespaces }

// HoldsReads reports whether a command can read files and list directories only if
// they are listed or belong to the system.
func (l Level) HoldsReads() bool { return l.Landlock > 0 || l.Namespaces }

// Hides reports whether paths that are not listed do not exist for the command. Landlock
// alone shows names, sizes and times of all files, and does not block sockets.
func (l Level) Hides() bool { return l.Namespaces }

// Overlays reports whether a Confinement may have overlays. Whether they work with the directories
// of a disk is what overlay.Probe reports.
func (l Level) Overlays() bool { return l.Namespaces }

// String describes the level for people.
func (l Level) String() string {
	var parts []string
	if l.Landlock > 0 {
		parts = append(parts, fmt.Sprintf("landlock v%d", l.Landlock))
	}
	if l.Namespaces {
		parts = append(parts, "own processes", "only listed files can be seen")
	} else if l.On() {
		parts = append(parts, "only listed files can be read", "sockets can be reached")
	}
	if !l.On() {
		parts = append(parts, "none")
	}
	if !l.HoldsWrites() && l.On() {
		parts = append(parts, "other files can be truncated")
	}
	return strings.Join(parts, ", ")
}

// Choose returns the Level to use, given the mode and the Level that Probe found. Under Require
// it refuses a machine that cannot deny reads and writes of other files. Under Prefer the caller
// reports the missing protection.
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
			Reason: fmt.Sprintf("agent.sandbox is require, and this machine supports: %s (%s)", machine, machine.Missing),
			Next:   "use Linux 6.2 or later with Landlock (lsm=…,landlock), or permit user namespaces, or set agent.sandbox: prefer in lockkeeper.yaml if you trust the commands"}
	}
	return Level{}, &lockkeeper.InputError{Field: "sandbox", Value: string(mode), Reason: "unknown", Next: "use prefer, require or off"}
}
