package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/durable"
)

// legacyDir is the directory of earlier pipelines.
const legacyDir = ".harden"

// A Store is a directory of documents. It is safe for concurrent use.
type Store struct {
	dir  string
	turn chan struct{} // full while a goroutine of this process holds or waits for the file lock

	synced directories

	// ops are the operations in an open folder.
	ops func(*os.Root) durable.Ops
}

// Open returns the directory of documents at an absolute path. The first write creates it.
func Open(dir string) *Store {
	return &Store{dir: filepath.Clean(dir), turn: make(chan struct{}, 1), synced: directories{},
		ops: func(root *os.Root) durable.Ops { return rooted{root: root} }}
}

// Dir returns the path that was given to Open.
func (s *Store) Dir() string { return s.dir }

func (s *Store) Unit(name string) *Folder { return (&Folder{store: s}).Sub(name) }

// decisions returns the folder of past decisions. No unit has its name.
func (s *Store) decisions() *Folder { return &Folder{store: s, parts: []string{decisionsDir}} }

// Units lists the units that have a folder. The list odd has links, and folders whose name is not
// that of a unit. Files are ignored.
func (s *Store) Units(ctx context.Context) (names, odd []string, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		link := e.Type()&fs.ModeSymlink != 0
		if e.Name() == decisionsDir || strings.HasPrefix(e.Name(), ".") || !e.IsDir() && !link {
			continue
		}
		if name, ok := UnitName(e.Name()); ok && !link {
			names = append(names, name)
		} else {
			odd = append(odd, e.Name())
		}
	}
	slices.Sort(names)
	return names, odd, nil
}

// A Folder is a folder below the directory of documents. It need not exist.
type Folder struct {
	store *Store
	parts []string // names on disk
	err   error    // why its name is invalid
}

// Sub returns a folder below this one. FolderName gives the name of each part.
func (f *Folder) Sub(parts ...string) *Folder {
	sub := &Folder{store: f.store, parts: slices.Clone(f.parts), err: f.err}
	for _, part := range parts {
		spelled, err := spell(part, "")
		sub.parts = append(sub.parts, spelled)
		sub.err = errors.Join(sub.err, err)
	}
	return sub
}

// Dir returns the folder's absolute path.
func (f *Folder) Dir() string { return filepath.Join(f.store.dir, f.rel("")) }

// rel returns the path of a file in the folder, relative to the directory of documents.
func (f *Folder) rel(name string) string {
	return filepath.FromSlash(path.Join(append(slices.Clone(f.parts), name)...))
}

// FindLegacy finds the directory of earlier pipelines below the root of a project.
func FindLegacy(root string) (dir string, found bool, err error) {
	dir = filepath.Join(root, legacyDir)
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil || !info.IsDir() {
		return "", false, err
	}
	return dir, true, nil
}

// Reserved names in the directory of documents.
const (
	decisionsDir = "decisions"
	lockFile     = ".lock"
)

const maxName = 255

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
			fmt.Fprintf(&b, "%%%02X", c)
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0, c == '+' && i == 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// UnitName is the inverse of FolderName. It returns false if no unit has this folder name.
func UnitName(folder string) (unit string, ok bool) {
	if folder == "%" {
		return "", true
	}
	unit, err := url.PathUnescape(folder)
	return unit, err == nil && unit != "" && FolderName(unit) == folder
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

// A MalformedError reports that a file is truncated, damaged, edited without its hash, or of
// another form. The file counts as missing, and only Write, WriteText and Keep overwrite it.
type MalformedError struct {
	Path   string // relative to the directory of documents
	Line   int    // 0 if unknown
	Reason string
	Next   string
}

func (e *MalformedError) Error() string {
	s := e.Path
	if e.Line > 0 {
		s += fmt.Sprintf(", line %d", e.Line)
	}
	return lockkeeper.JoinNext(s+": "+e.Reason, e.Next)
}

func (e *MalformedError) NextStep() string { return e.Next }

func (e *MalformedError) Code() lockkeeper.Code { return lockkeeper.CodeInput }

// A ChangedError reports that a document changed since the caller read it.
type ChangedError struct {
	Path string
	Was  string // the hash at that time; "": the document was missing
	Is   string // the present hash; "": the document is missing or malformed

	By string    // the author of the change, if known
	At time.Time // the time of the change

	Malformed error // why the document cannot be read; nil if it can
}

func (e *ChangedError) Error() string {
	s := e.Path + " changed since it was read: "
	switch {
	case e.Malformed != nil:
		return s + "it cannot be read: " + e.Malformed.Error()
	case e.Is == "":
		return lockkeeper.JoinNext(s+"it was removed", e.NextStep())
	case e.Was == "":
		s += "it was created"
	default:
		s += "its content differs"
	}
	if e.By != "" {
		s += ", by " + e.By
	}
	if !e.At.IsZero() {
		s += " at " + e.At.UTC().Format(time.RFC3339)
	}
	return lockkeeper.JoinNext(s, e.NextStep())
}

func (e *ChangedError) NextStep() string { return "read it again, then decide" }

func (e *ChangedError) Unwrap() error { return e.Malformed }

func (e *ChangedError) Code() lockkeeper.Code { return lockkeeper.CodeRefused }
