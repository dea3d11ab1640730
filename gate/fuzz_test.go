package gate_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/gate"
)

// FuzzCommitPaths runs scripts with one command per line. The commands mkdir P, file P, link P TO,
// hard P TO and move P TO create entries in the tree. OUT is a directory outside of it. The
// commands put P…, delete P…, chmod P… and rename P TO go through the gate. For any spelling and
// any entry, nothing changes outside the root or the allowlist.
//
// shows: SW-35 PL-55
func FuzzCommitPaths(f *testing.F) {
	inMemory(f)
	for _, script := range []string{
		"put test/a\nput test/a test/b/c\ndelete test/a\nrename test/b/c app/models/d\nchmod app/models/d",
		"link test/out OUT\nput test/out/f\ndelete test/out/f\nput test/out/new/deep",
		"link test/f OUT/f\nput test/f\nchmod test/f\ndelete test/f\nrename test/f test/g",
		"link test/lib ../lib\nput test/lib/x test/ok\ndelete test/lib/x\nrename test/lib/x test/x",
		"move test gone\nlink test OUT\nput test/f\ndelete test/f",
		"move test gone\nlink test lib\nput test/x test/new",
		"link app/models OUT\nput app/models/f\nput app/models/../x",
		"link test/a b\nlink test/b a\nput test/a\nput test/a/x",
		"link test/up ../../../../../../etc\nput test/up/lockkeeper-was-here",
		"link test/git ../.git\nlink test/own ../.lockkeeper\nput test/git/config test/own/stage/x\nput test/.git/config\nput test/sub/.LOCKKEEPER/x",
		"hard test/h lib/x\nput test/h\nchmod test/h\ndelete test/h",
		"put ../x\nput /etc/lockkeeper-was-here\nput OUT/f\nput lib/x\nput lockkeeper.yaml\nput .\nput test\nput test/",
		"link test/d .\nput test/d/d/d/x\nlink test/e ./././../test/./new\nput test/e/y\nput test/new",
		"mkdir test/a/b\nmove test/a lib/a\nlink test/a ../lib/a\nput test/a/b/c",
		"file test/a\nput test/a/b\nput test/a\nput test/a test//a ./test/a",
		"rename lib/x test/x\nrename test/ok lib/y\nput lib/../test/x\nput test/./x//y",
	} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		outside := t.TempDir()
		must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("sentinel"), 0o644))
		w := newWorld(t, map[string]string{"lib/x": "sentinel", "test/ok": "ok", "lockkeeper.yaml": "sentinel", ".git/config": "sentinel"},
			gate.Options{Allowed: []string{"test", "app/models"}, GrantOptional: true})
		must(t, os.WriteFile(filepath.Join(w.dir, ".lockkeeper", "space.json"), []byte("sentinel"), 0o600))
		root, err := os.OpenRoot(w.dir)
		must(t, err)
		defer root.Close()
		lines := strings.Split(strings.ReplaceAll(script, "OUT", outside), "\n")
		for _, line := range lines[:min(len(lines), 12)] {
			if plantLine(root, line) {
				continue
			}
			before := forbidden(t, w, outside)
			err := throughGate(t, w, line)
			for _, d := range differences(before, forbidden(t, w, outside)) {
				t.Errorf("%q, after which %v: %s", line, err, d)
			}
			w.noStages()
		}
	})
}

// plantLine runs one line of a script that prepares the tree, without leaving the tree. It
// ignores errors: a file that cannot be created is absent.
func plantLine(root *os.Root, line string) bool {
	words := strings.Fields(line)
	if len(words) < 2 || strings.Contains(line, ".lockkeeper") && words[0] != "link" {
		return len(words) < 2
	}
	path, to := words[1], words[len(words)-1]
	switch words[0] {
	case "mkdir":
		root.MkdirAll(path, 0o755)
	case "file":
		root.WriteFile(path, []byte("planted"), 0o644)
	case "link":
		root.Symlink(to, path)
	case "hard":
		root.Link(to, path)
	case "move":
		root.Rename(path, to)
	default:
		return false
	}
	return true
}

// throughGate runs one line of a script through the gate.
func throughGate(t *testing.T, w *world, line string) error {
	words := strings.Fields(line)
	var changes []gate.Change
	for _, path := range words[1:] {
		switch words[0] {
		case "put":
			changes = append(changes, gate.Put(path, []byte("forced")))
		case "delete":
			changes = append(changes, gate.Delete(path))
		case "chmod":
			changes = append(changes, chmod(path, 0o777))
		}
	}
	if words[0] == "rename" {
		changes = gate.Rename(words[1], words[len(words)-1])
	}
	_, err := w.gate.Commit(t.Context(), &lockkeeper.Grant{}, changes)
	return err
}

// forbidden returns everything that the gate may not change.
func forbidden(t *testing.T, w *world, outside string) map[string]string {
	t.Helper()
	all := scan(t, w.dir, ".lockkeeper")
	maps.DeleteFunc(all, func(path, what string) bool {
		switch path {
		case "app": // created as the parent of app/models
			return strings.HasPrefix(what, "d")
		case "test", "app/models": // the gate may create a file here, but never a link
			return !strings.HasPrefix(what, "L")
		}
		return strings.HasPrefix(path, "test/") || strings.HasPrefix(path, "app/models/")
	})
	for path, what := range scan(t, outside) {
		all[filepath.Join(outside, path)] = what
	}
	own, err := os.ReadDir(w.in(".lockkeeper"))
	must(t, err)
	for _, e := range own {
		switch e.Name() {
		case "stage", "recover", "kept", "rescue":
		default:
			all[".lockkeeper/"+e.Name()] = e.Type().String()
		}
	}
	return all
}
