package documents

import (
	"fmt"
	"math/big"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"lockkeeper"
)

// Reserved names in the directory of documents.
const (
	decisionsDir = "decisions"
	lockFile     = ".lock"
	ignoreFile   = ".gitignore"
)

// Reserved names in the folder of a unit. The folder of another unit can be next to them.
const (
	researchDir = "research" // one text for each topic
	filesDir    = "files"    // whole files, each under the hash of its content
	batchesDir  = "batches"
	earlierDir  = "earlier" // replaced documents
)

// isOwn reports whether a name is reserved for a directory in which units have documents.
func isOwn(name string) bool {
	return slices.Contains([]string{researchDir, filesDir, batchesDir, earlierDir}, name)
}

const maxName = 255

// unsafeChars are characters that some system forbids in a file name, or that FolderName itself uses.
const unsafeChars = `/\:*?"<>|%~`

// devices are the names that Windows reserves, with any extension.
var devices = []string{"con", "prn", "aux", "nul", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"}

// UnitPath returns the folder of a unit, relative to the directory of documents: blog/posts is
// in blog/posts. Each part of the name is spelled by FolderName.
func UnitPath(unit string) string { return path.Join(unitParts(unit)...) }

func unitParts(unit string) []string {
	parts := strings.Split(unit, "/")
	for i, part := range parts {
		parts[i] = FolderName(part)
	}
	return parts
}

// FolderName returns a name as the name of one folder. It keeps what can be a file name on every
// system, and writes other bytes as %XX. No two names share a folder, also on a disk that ignores case
// or the form of accents: a name with unusual capitals ends with "~" and a number that says which
// letters they are. Usual capitals are those in "posts" and "Post List". A reserved name ends with
// "~". The folder of the empty name is "%".
func FolderName(name string) string {
	if name == "" {
		return "%"
	}
	var b strings.Builder
	composed := norm.NFC.IsNormalString(name)
	device, _, _ := strings.Cut(name, ".")
	isDevice := slices.Contains(devices, strings.ToLower(strings.TrimRight(device, " ")))
	capitals, letters := new(big.Int), 0
	title, wordStart := strings.Contains(name, " "), true
	for i, r := range name {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(name[i:])
		}
		atEnd := i == 0 || i+size == len(name)
		isDocument := len(name) >= i+5 && strings.EqualFold(name[i:i+5], ".json")
		if !isPlain(r, composed) || atEnd && (r == ' ' || r == '.') || r == '.' && (isDevice || isDocument) {
			for _, c := range []byte(name[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(name[i : i+size])
		}
		if unicode.SimpleFold(r) != r && isPlain(r, composed) {
			if usual := title && wordStart; unicode.IsUpper(r) != usual {
				capitals.SetBit(capitals, letters, 1)
			}
			letters++
			wordStart = false
		}
		if r == ' ' {
			wordStart = true
		}
	}
	switch {
	case capitals.Sign() > 0:
		b.WriteString("~" + capitals.Text(36))
	case isOwn(name), name == decisionsDir, isDevice:
		b.WriteString("~")
	}
	if b.Len() > maxName {
		return KeyName(name) // this name needs no number, and is often shorter
	}
	return b.String()
}

// isPlain reports whether a character can stay in a folder name. A letter beyond ASCII must be
// its own composed form and have at most one other case.
func isPlain(r rune, composed bool) bool {
	switch {
	case r < ' ' || r == utf8.RuneError || r == 0x7f:
		return false
	case r < utf8.RuneSelf:
		return !strings.ContainsRune(unsafeChars, r)
	case !composed || !unicode.In(r, unicode.L, unicode.Nd):
		return false
	}
	folded := []rune(cases.Fold().String(string(r)))
	if len(folded) != 1 || folded[0] < utf8.RuneSelf || norm.NFKC.String(string(r)) != string(r) {
		return false
	}
	other := unicode.SimpleFold(r)
	return other == r || unicode.SimpleFold(other) == r && unicode.IsUpper(r) != unicode.IsUpper(other)
}

// partOf is the inverse of FolderName for a part of a unit's name.
func partOf(folder string) (part string, ok bool) {
	if folder == "%" {
		return "", true
	}
	folder = norm.NFC.String(folder) // some disks decompose names
	escaped, _, _ := strings.Cut(folder, "~")
	part, err := url.PathUnescape(escaped)
	return part, err == nil && part != "" && !strings.Contains(part, "/") && FolderName(part) == folder
}

// KeyName returns a name as one part of a key, in lower case and ASCII, so that equal keys mean
// equal names everywhere. Lower-case letters, digits, "_", "-" and "." stay; every other byte
// becomes %XX. A leading dot is escaped, a leading "+" is not. The empty name is "%".
func KeyName(name string) string {
	if name == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case i == 0 && name == decisionsDir:
			fmt.Fprintf(&b, "%%%02X", c)
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0, c == '+' && i == 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// ParseKeyName is the inverse of KeyName. It returns false if no name has this form.
func ParseKeyName(key string) (name string, ok bool) {
	if key == "%" {
		return "", true
	}
	name, err := url.PathUnescape(key)
	return name, err == nil && name != "" && KeyName(name) == key
}

// fits refuses a file name that is too long.
func fits(name, spelled string) error {
	if len(spelled) > maxName {
		return &lockkeeper.InputError{Field: "name", Value: name, Next: "choose a shorter name",
			Reason: "too long: its spelling as a file name has more than 255 bytes"}
	}
	return nil
}

// documentName refuses a name that is not a plain name of a JSON file.
func documentName(name string) error {
	if len(name) > maxName || KeyName(name) != name || !strings.HasSuffix(name, ".json") {
		return &lockkeeper.InputError{Field: "document", Value: name, Reason: "not the plain name of a JSON file",
			Next: "use lower-case letters, digits, _ and -, and .json at the end; Sub names folders"}
	}
	return nil
}

// textName returns the file of a topic.
func textName(topic string) (string, error) {
	file := KeyName(topic) + ".md"
	return file, fits(topic, file)
}
