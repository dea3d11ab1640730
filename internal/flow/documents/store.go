package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
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

// Unit returns the folder of a unit, UnitPath. Documents that an earlier version stored in one
// folder for the whole name are found there until Move moves them.
func (s *Store) Unit(name string) *Folder {
	return (&Folder{store: s}).with(name, step{names: unitParts(name), former: []string{KeyName(name)}})
}

// Screen returns the folder of a screen of a unit. An earlier version stored its documents below
// former.
func (s *Store) Screen(unit, name string, former ...string) *Folder {
	for i, part := range former {
		former[i] = KeyName(part)
	}
	return (&Folder{store: s}).with(name, step{names: append(unitParts(unit), FolderName(name)), former: former})
}

// decisions returns the folder of past decisions. No unit has its name.
func (s *Store) decisions() *Folder {
	return (&Folder{store: s}).with("", step{names: []string{decisionsDir}})
}

// Units lists the units that have documents. The list odd has links, and folders whose name is not
// that of a unit. Files are ignored.
func (s *Store) Units(ctx context.Context) (names, odd []string, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, e := range entries {
		link := e.Type()&fs.ModeSymlink != 0
		if e.Name() == decisionsDir || strings.HasPrefix(e.Name(), ".") || !e.IsDir() && !link {
			continue
		}
		if part, ok := partOf(e.Name()); ok && !link {
			err = s.unitsBelow(ctx, part, []string{e.Name()}, seen)
		} else if name, ok := ParseKeyName(e.Name()); ok && !link {
			seen[name] = true // an earlier version created the folder
		} else {
			odd = append(odd, e.Name())
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return slices.Sorted(maps.Keys(seen)), odd, context.Cause(ctx)
}

// unitsBelow adds the unit of a folder and those in folders below it.
func (s *Store) unitsBelow(ctx context.Context, unit string, parts []string, seen map[string]bool) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(append([]string{s.dir}, parts...)...))
	if err != nil {
		return err
	}
	if hasOwn(entries) {
		seen[unit] = true
	}
	for _, e := range entries {
		if part, ok := partOf(e.Name()); ok && e.IsDir() && !strings.HasPrefix(unit, "+") {
			if err := s.unitsBelow(ctx, unit+"/"+part, append(slices.Clone(parts), e.Name()), seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasOwn reports whether a folder has documents of its own, and not only folders of other units.
func hasOwn(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() || isOwn(e.Name()) })
}

// A Folder is a folder below the directory of documents. It need not exist.
type Folder struct {
	store *Store
	steps []step
	err   error // why the name is invalid
}

// A step leads from one folder to another.
type step struct {
	names  []string // names of the nested folders on disk
	former []string // where an earlier version stored the folder, if elsewhere
}

// with adds a step to a folder.
func (f *Folder) with(name string, next step) *Folder {
	if slices.Equal(next.names, next.former) {
		next.former = nil
	}
	below := &Folder{store: f.store, steps: append(slices.Clone(f.steps), next), err: f.err}
	for _, part := range next.names {
		below.err = errors.Join(below.err, fits(name, part))
	}
	return below
}

// Batch returns the folder of a batch of the unit.
func (f *Folder) Batch(id string) *Folder {
	return f.own(batchesDir).with(id, step{names: []string{FolderName(id)}, former: []string{KeyName(id)}})
}

// Earlier returns a folder for replaced documents.
func (f *Folder) Earlier(n int) *Folder {
	return f.own(earlierDir).with("", step{names: []string{strconv.Itoa(n)}})
}

func (f *Folder) own(dir string) *Folder { return f.with("", step{names: []string{dir}}) }

// Dir returns the folder's absolute path.
func (f *Folder) Dir() string { return f.place().dir() }

// place returns where the folder is at this moment.
func (f *Folder) place() place {
	at := place{store: f.store}
	for _, s := range f.steps {
		if at.isFormer(s) {
			at = at.below(s.former...)
		} else {
			at = at.below(s.names...)
		}
	}
	return at
}

// A place is a path below the directory of documents.
type place struct {
	store *Store
	parts []string
}

func (p place) below(names ...string) place {
	return place{store: p.store, parts: append(slices.Clone(p.parts), names...)}
}

// isFormer reports whether only the former folder of a step has documents.
func (p place) isFormer(s step) bool {
	if len(s.former) == 0 {
		return false
	}
	if info, err := os.Lstat(p.below(s.former...).dir()); err != nil || !info.IsDir() {
		return false
	}
	now, err := os.ReadDir(p.below(s.names...).dir())
	return err != nil || !hasOwn(now)
}

func (p place) dir() string { return filepath.Join(p.store.dir, p.rel("")) }

// rel returns the path of a file in the folder, relative to the directory of documents.
func (p place) rel(name string) string {
	return filepath.FromSlash(path.Join(append(slices.Clone(p.parts), name)...))
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
	Was  string // the hash of the document when it was read; empty: it was missing
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
