package sidecar

import (
	"strings"

	"lockkeeper"
)

// Names in the sidecar directory that are no unit's.
const (
	decisionsDir = "decisions"
	lockFile     = ".lock"
)

// maxName is what file systems take for one name, in bytes.
const maxName = 255

const upperHex = "0123456789ABCDEF"

// FolderName spells a name as one folder. No two names share a spelling, also where a
// disk takes capital and small letters, or two forms of an accent, for the same: small
// letters, digits, "_", "-" and "." stay, every other byte is %XX. A dot stays unless it
// comes first, a "+" only if it does. The folder of the empty name is "%".
//
// A name can be too long for a folder; then the Folder made of it refuses everything.
func FolderName(unit string) string {
	if unit == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(unit) {
		switch c := unit[i]; {
		case i == 0 && unit == decisionsDir:
			escape(&b, c)
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0, c == '+' && i == 0:
			b.WriteByte(c)
		default:
			escape(&b, c)
		}
	}
	return b.String()
}

func escape(b *strings.Builder, c byte) {
	b.WriteByte('%')
	b.WriteByte(upperHex[c>>4])
	b.WriteByte(upperHex[c&15])
}

// UnitName is the name that FolderName spells so; ok is false where it spells none so.
func UnitName(folder string) (unit string, ok bool) {
	if folder == "%" {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(folder); i++ {
		if folder[i] != '%' {
			b.WriteByte(folder[i])
			continue
		}
		if i+2 >= len(folder) {
			return "", false
		}
		high, low := strings.IndexByte(upperHex, folder[i+1]), strings.IndexByte(upperHex, folder[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	unit = b.String()
	return unit, unit != "" && FolderName(unit) == folder
}

// spell is FolderName with suffix, for whoever is going to use it as a name on disk.
func spell(name, suffix string) (string, error) {
	folder := FolderName(name) + suffix
	if len(folder) > maxName {
		return "", &lockkeeper.InputError{Field: "name", Value: name, Next: "choose a shorter name",
			Reason: "too long: its spelling as a file name has more than 255 bytes (capitals and all but ASCII letters count three each)"}
	}
	return folder, nil
}

// documentName refuses what is not the plain name of a JSON file.
func documentName(name string) error {
	if folder, err := spell(name, ""); err != nil || folder != name || !strings.HasSuffix(name, ".json") {
		return &lockkeeper.InputError{Field: "document", Value: name, Reason: "not the plain name of a JSON file",
			Next: "use small letters, digits, _ and -, and .json at the end; folders are named with Sub"}
	}
	return nil
}
