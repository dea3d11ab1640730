package tidy

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Phase is one part of a run.
type Phase struct {
	Name  string // name of the phase on the command line, and of its lease file
	Title string
	plan  func(root string) ([]Transfer, error)
	clean func(root string, moved []Transfer) // nil: nothing to do after the moves
}

func Phases() []Phase {
	return []Phase{
		{Name: "root", Title: "root routing", plan: planRoot},
		{Name: "docs", Title: "docs hygiene", plan: planDocs},
		{Name: "archive", Title: "archive consolidation", plan: planArchive},
		{Name: "runs", Title: "cleanup of " + runsDir, plan: planRuns, clean: removeEmpty},
	}
}

// PhaseNames lists the names of all phases, for messages.
func PhaseNames() string {
	var names []string
	for _, ph := range Phases() {
		names = append(names, ph.Name)
	}
	return strings.Join(names, ", ")
}

const (
	docsDir    = "docs"
	archiveDir = "archive"
)

// rootDocuments are documents that belong in the root of a codebase, by the beginning of
// their names.
var rootDocuments = []string{"readme", "license", "licence", "copying", "notice", "changelog", "changes", "history", "contributing", "code_of_conduct",
	"security", "support", "authors", "maintainers", "governance", "claude", "agents", "gemini", "index"}

var (
	documents = regexp.MustCompile(`(?i)\.(md|rst|adoc)$`)
	logs      = regexp.MustCompile(`(?i)\.log$`)
	leftovers = regexp.MustCompile(`(?i)(~|\.(bak|orig|old|tmp))$`)
	outdated  = regexp.MustCompile(`(?i)[_-](old|deprecated|obsolete|superseded)\.(md|rst|adoc)$`)
	dated     = regexp.MustCompile(`(?:^|[^0-9])(20[0-9]{2})[-_]?(0[1-9]|1[0-2])(?:[-_]?(?:0[1-9]|[12][0-9]|3[01]))?(?:[^0-9]|$)`)
)

func planRoot(root string) ([]Transfer, error) {
	return planIn(root, ".", func(name string, _ fs.FileInfo) (to, reason string) {
		lower := strings.ToLower(name)
		isHome := slices.ContainsFunc(rootDocuments, func(stem string) bool { return strings.HasPrefix(lower, stem) })
		switch {
		case logs.MatchString(name):
			return path.Join(archiveDir, "logs", name), "a log"
		case leftovers.MatchString(name):
			return path.Join(archiveDir, "root", name), "a leftover"
		case documents.MatchString(name) && !isHome:
			return path.Join(docsDir, name), "a document"
		}
		return "", ""
	})
}

// planArchive sorts the files of the archive by month: the month in the name, or else of
// the last change.
func planArchive(root string) ([]Transfer, error) {
	return planIn(root, archiveDir, func(name string, info fs.FileInfo) (to, reason string) {
		month, reason := info.ModTime().UTC().Format("2006-01"), "the date of its last change"
		if found := dated.FindStringSubmatch(name); found != nil {
			month, reason = found[1]+"-"+found[2], "the date in its name"
		}
		return path.Join(archiveDir, month, name), reason
	})
}

func planIn(root, dir string, where func(string, fs.FileInfo) (to, reason string)) (moves []Transfer, err error) {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !isFile(e) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if to, reason := where(e.Name(), info); to != "" {
			moves = append(moves, Transfer{From: path.Join(dir, e.Name()), To: to, Reason: reason})
		}
	}
	return moves, err
}

// isFile reports whether e is a regular file that is not hidden.
func isFile(e fs.DirEntry) bool { return e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") }

// planDocs plans to move outdated files, logs and leftovers out of the documentation.
func planDocs(root string) (moves []Transfer, err error) {
	top := filepath.Join(root, docsDir)
	err = filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case !isFile(e):
			return nil
		}
		below, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		reason := ""
		switch {
		case logs.MatchString(e.Name()):
			reason = "a log"
		case leftovers.MatchString(e.Name()):
			reason = "a leftover"
		case outdated.MatchString(e.Name()):
			reason = "its name says that it is outdated"
		default:
			return nil
		}
		moves = append(moves, Transfer{From: below, To: path.Join(archiveDir, below), Reason: reason})
		return nil
	})
	return moves, err
}
