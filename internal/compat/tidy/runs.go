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
	"time"

	"golang.org/x/sys/unix"
)

const (
	runsDir = ".autonomous_runs"

	// A run stays if it changed within runAge, or is one of the newest keptRuns with the
	// same beginning of its name.
	runAge   = 7 * 24 * time.Hour
	keptRuns = 10
)

// workspaces are directories of .autonomous_runs that belong to tools and not to one run.
var workspaces = strings.Fields("autopack _shared baselines batch_drain_sessions checkpoints tidy_checkpoints")

// records are files that runs leave in .autonomous_runs itself.
var records = regexp.MustCompile(`(?i)\.(log|json|jsonl)$`)

// planRuns moves old runs, and what runs left beside them, to the archive.
func planRuns(root string) (moves []Transfer, err error) {
	old := time.Now().Add(-runAge)
	moves, err = planIn(root, runsDir, func(name string, info fs.FileInfo) (to, reason string) {
		if !records.MatchString(name) || strings.HasPrefix(name, path.Base(QueueFile)) || info.ModTime().After(old) {
			return "", ""
		}
		return path.Join(archiveDir, "runs", name), "a record without a run"
	})
	if err != nil {
		return nil, err
	}
	groups, err := runsIn(filepath.Join(root, runsDir))
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		for _, r := range group[min(keptRuns, len(group)):] {
			if r.changed.After(old) {
				continue
			}
			for _, name := range r.files {
				moves = append(moves, Transfer{From: path.Join(runsDir, name), To: path.Join(archiveDir, "runs", name), Reason: "a run of " + r.changed.UTC().Format(time.DateOnly)})
			}
		}
	}
	slices.SortFunc(moves, func(a, b Transfer) int { return strings.Compare(a.From, b.From) })
	return moves, nil
}

// A runDir is the directory of one run.
type runDir struct {
	changed time.Time // when the newest file of the run changed
	files   []string  // files of the run, relative to .autonomous_runs
}

// runsIn returns the runs in a directory, newest first, grouped by the beginning of their
// names. A directory with documents or an archive is a project and not a run.
func runsIn(dir string) (map[string][]runDir, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	groups := map[string][]runDir{}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || strings.HasPrefix(name, ".") || slices.Contains(workspaces, name) || exists(filepath.Join(dir, name, docsDir)) || exists(filepath.Join(dir, name, archiveDir)) {
			continue
		}
		r, err := readRun(dir, name)
		if err != nil {
			return nil, err
		}
		group, _, _ := strings.Cut(name, "-")
		groups[group] = append(groups[group], r)
	}
	for _, group := range groups {
		slices.SortFunc(group, func(a, b runDir) int { return b.changed.Compare(a.changed) })
	}
	return groups, err
}

func readRun(dir, name string) (r runDir, err error) {
	err = filepath.WalkDir(filepath.Join(dir, name), func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.ModTime().After(r.changed) {
			r.changed = info.ModTime()
		}
		if !isFile(e) {
			return nil
		}
		below, err := filepath.Rel(dir, file)
		r.files = append(r.files, filepath.ToSlash(below))
		return err
	})
	return r, err
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// removeEmpty removes the directories that moves have left empty, up to their run's. It never
// removes a file, even if one has replaced a directory meanwhile.
func removeEmpty(root string, moves []Transfer) {
	for _, m := range moves {
		for dir := path.Dir(m.From); strings.HasPrefix(dir, runsDir+"/"); dir = path.Dir(dir) {
			if unix.Rmdir(filepath.Join(root, dir)) != nil { // the directory is not empty
				break
			}
		}
	}
}
