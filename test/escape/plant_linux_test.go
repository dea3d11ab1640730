package escape

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Files that other tasks of the plan may change.
const (
	swappedFile    = "swap/notes-nobody-listed" // the last name exists in the home directory
	privilegedFile = "app/privileged.sh"
)

// cached lists files in caches of the person, which a run shows to commands.
var cached = []string{".cache/go-build/00/entry", "go/pkg/mod/m/m.go", ".npm/_cacache/entry", ".cargo/registry/entry", ".cache/pip/entry"}

// sharedPlaces lists the directories where a command could leave files for later ones.
func sharedPlaces() []string {
	return []string{"/dev/shm", "/tmp", "/var/tmp", os.TempDir(), os.Getenv("HOME")}
}

// mark returns the name of the files that the planting command leaves for later ones.
func (w *world) mark() string { return "lk-left-" + w.daemon() }

// daemon returns the number of seconds for which the daemon of the planting command sleeps. No
// other process sleeps so long.
func (w *world) daemon() string {
	h := fnv.New32()
	h.Write([]byte(w.Secret))
	return fmt.Sprint(1_000_000 + h.Sum32()%1_000_000_000)
}

// found returns the places where an earlier command left a file.
func (w *world) found() (list []string) {
	for _, dir := range sharedPlaces() {
		if _, err := os.Lstat(filepath.Join(dir, w.mark())); err == nil {
			list = append(list, dir)
		}
	}
	return list
}

// swap replaces the directory of a file that the task may change by a link to the home
// directory. The gate could then read the person's file, or remove it.
func swap(w *world) error {
	dir := filepath.Dir(swappedFile)
	return errors.Join(os.RemoveAll(dir), os.Symlink(w.Home, dir))
}

// privilege creates a program that would run with the rights of its owner.
func privilege(*world) error {
	return errors.Join(os.WriteFile(privilegedFile, []byte("#!/bin/sh\nid\n"), 0o755), os.Chmod(privilegedFile, 0o755|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
}

// plant leaves files in the workspace that must not land, and two that may. A link in place of
// a file that the task may change could reveal its target, or make the gate write there.
func plant(w *world) error {
	planted := append([]string{"app/created.txt", ".git/hooks/post-commit", "app/a\nlockkeeper.yaml", ".lockkeeper/planted"}, protected...)
	for _, dir := range sharedPlaces() {
		os.WriteFile(filepath.Join(dir, w.mark()), nil, 0o600) // later commands look for it
	}
	for _, path := range cached {
		leave(filepath.Join(w.Home, path))
		leave(filepath.Join(os.Getenv("HOME"), path))
	}
	// It has another session, no parent, no mark and no open file.
	daemon := exec.Command("/bin/sh", "-c", `(ulimit -m 1000; cd /; exec setsid -f sleep "$0" </dev/null >/dev/null 2>&1) &`, w.daemon())
	if err := daemon.Run(); err != nil {
		return err
	}
	for _, path := range planted {
		if path == coveredBy {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(path, []byte("planted"), 0o755); err != nil {
			return err
		}
	}
	if err := os.Remove(coveredBy); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(w.Home, homeSecrets[0]), coveredBy)
}

// home returns the modes and contents of the files in the home directory, except Lockkeeper's
// own.
func (s *scene) home() map[string]string {
	s.t.Helper()
	list := map[string]string{}
	must(s.t, filepath.WalkDir(s.w.Home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == s.w.State {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		list[path] = info.Mode().String()
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			list[path] += " " + string(text)
			return err
		}
		return nil
	}))
	return list
}

// checkPlanted checks from outside what the planting tasks achieved.
func (s *scene) checkPlanted(homeBefore map[string]string) {
	s.t.Helper()
	s.t.Cleanup(func() { os.Remove(filepath.Join("/dev/shm", s.w.mark())) })
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(s.t, err)
	for _, line := range lines {
		if text, err := os.ReadFile(line); err == nil && strings.Contains(string(text), "\x00"+s.w.daemon()+"\x00") {
			s.t.Errorf("%s: a process outlives the run: %q", line, text)
		}
	}
	info, err := os.Lstat(filepath.Join(s.w.Root, privilegedFile))
	if err != nil {
		s.t.Errorf("nothing landed, so it proves nothing: %v", err)
	} else if info.Mode() != 0o755 {
		s.t.Errorf("%s landed as %v", privilegedFile, info.Mode())
	}
	left := s.left()
	wants := map[string]bool{"/dev/shm": s.l.off || s.l.alone()}
	for _, dir := range sharedPlaces() {
		if is := strings.Contains(left, " "+dir+" "); is != wants[dir] && !(s.l.off && dir != "/dev/shm") {
			s.t.Errorf("the next command finds what was left in %s: %v (%s)", dir, is, left)
		}
	}
	if s.l.off {
		return
	}
	for path, now := range s.home() {
		if was, there := homeBefore[path]; !there || was != now {
			s.t.Errorf("%s in the home directory was %.100q, is %.100q", path, was, now)
		}
		delete(homeBefore, path)
	}
	for path := range homeBefore {
		s.t.Errorf("%s in the home directory is gone", path)
	}
}

// left returns what the verifying call of the planting task found.
func (s *scene) left() string {
	s.t.Helper()
	found := ""
	must(s.t, filepath.WalkDir(filepath.Join(s.w.Root, ".pipeline"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, part := range strings.Split(string(text), "left: ")[1:] {
			part, _, _ = strings.Cut(part, ";")
			found += " " + part + " "
		}
		return err
	}))
	return found
}
