package sidecar

import (
	"strings"

	"lockkeeper"
)

// Reserved names in the sidecar directory.
const (
	decisionsDir = "decisions"
	lockFile     = ".lock"
)

// maxName is the longest file name in bytes.
const maxName = 255

const upperHex = "0123456789ABCDEF"

// FolderName returns the folder name of a unit. No two units share one, also on a disk that
// ignores case or the form of accents. Lower-case letters, digits, "_", "-" and "." stay; every
// other byte becomes %XX. A leading dot is escaped, a leading "+" is not. The folder of the empty
// name is "%". If a name is too long, its Folder refuses every operation.
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

// UnitName is the inverse of FolderName. It returns false if no unit has this folder name.
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

// spell returns FolderName with a suffix. It refuses a name that is too long.
func spell(name, suffix string) (string, error) {
	folder := FolderName(name) + suffix
	if len(folder) > maxName {
		return "", &lockkeeper.InputError{Field: "name", Value: name, Next: "choose a shorter name",
			Reason: "too long: its spelling as a file name has more than 255 bytes (an upper-case or non-ASCII byte counts as three)"}
	}
	return folder, nil
}

// documentName refuses a name that is not a plain name of a JSON file.
func documentName(name string) error {
	if folder, err := spell(name, ""); err != nil || folder != name || !strings.HasSuffix(name, ".json") {
		return &lockkeeper.InputError{Field: "document", Value: name, Reason: "not the plain name of a JSON file",
			Next: "use lower-case letters, digits, _ and -, and .json at the end; Sub names folders"}
	}
	return nil
}
