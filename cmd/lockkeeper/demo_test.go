package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
	"lockkeeper/internal/sample"
)

// demonstrated is a demonstration that was kept.
type demonstrated struct {
	Landed     int      `json:"writes_landed"`
	Refused    int      `json:"writes_refused"`
	Collisions []string `json:"collisions"`
	Files      int      `json:"files_changed"`
	Batches    int      `json:"batches"`
	Dir        string   `json:"dir"`
}

// demonstrate runs the demonstration with programs of a search path.
func demonstrate(t *testing.T, path string) (d demonstrated) {
	t.Helper()
	temp, err := os.MkdirTemp("", "d") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(temp, "lockkeeper") // by its name it knows what it is
	if err := copyProgram(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "demo", "--fast", "--keep", "--json")
	cmd.Env = []string{"PATH=" + path, "TMPDIR=" + temp, "HOME=" + temp, "GORACE=atexit_sleep_ms=0"}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &d)
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, said.String())
	}
	noneLeft(t, temp)
	return d
}

func copyProgram(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// noneLeft holds that no process runs any more that came out of a directory or works there.
func noneLeft(t *testing.T, dir string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range all {
		for _, link := range []string{"exe", "cwd"} {
			if at, err := os.Readlink(filepath.Join(proc, link)); err == nil && strings.HasPrefix(at, dir+"/") { // others are not ours to see
				t.Errorf("process %s is left: %s is %s", filepath.Base(proc), link, at)
			}
		}
	}
}

// What the demonstration says it counted is what the codebase that it leaves has.
//
// shows: PL-28 SW-75
func TestDemo(t *testing.T) {
	d := demonstrate(t, os.Getenv("PATH"))
	if d.Landed != 21 || d.Refused != 1 || len(d.Collisions) != 0 || d.Batches != 10 {
		t.Errorf("%+v", d)
	}
	original := t.TempDir()
	if err := sample.Write(original); err != nil {
		t.Fatal(err)
	}
	before, after := sums(t, original), sums(t, d.Dir)
	changed := 0
	for path, sum := range after {
		if before[path] != sum && path != "lockkeeper.yaml" {
			changed++
		}
	}
	if changed != d.Files || before["app/models/user.rb"] != after["app/models/user.rb"] {
		t.Errorf("%d files changed, and it says %d", changed, d.Files)
	}
	a, err := app.Open(t.Context(), app.Settings{Dir: d.Dir, Env: func(name string) (string, bool) {
		return filepath.Dir(d.Dir), name == "XDG_STATE_HOME"
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	rec, err := a.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counted(t, d, rec, after)
	host, err := process.NewHost()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := a.Locks.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Process == nil || host.Life(*e.Process) != lockkeeper.LifeDead {
			t.Errorf("%s still holds grant %s", e.Holder, e.ID)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", d.Dir, "log", "--oneline").Output(); err == nil && bytes.Count(out, []byte("\n")) != 1+d.Batches {
		t.Errorf("there is not one commit for each batch:\n%s", out)
	}
}

// counted holds the figures against the record.
func counted(t *testing.T, d demonstrated, rec *app.Record, after map[string][32]byte) {
	t.Helper()
	landed, refused, crashed := 0, 0, 0
	left := map[string][32]byte{}
	for _, l := range rec.Landings {
		for _, c := range l.Changes {
			landed++
			left[c.Path] = c.New.Sum
		}
	}
	for path, sum := range left {
		if after[path] != sum {
			t.Errorf("%s is not what the last landing left there", path)
		}
	}
	for _, ev := range rec.Events {
		switch ev.Kind {
		case lockkeeper.EventGap:
			refused++
			if ev.Data["path"] != "app/models/user.rb" {
				t.Errorf("a write to %s was refused", ev.Data["path"])
			}
		case lockkeeper.EventRecovered:
			crashed++
		}
	}
	if landed != d.Landed || refused != d.Refused || crashed == 0 {
		t.Errorf("landed %d, refused %d, recovered %d; it says %+v", landed, refused, crashed, d)
	}
}

// sums is the hash of each file of a codebase but those of tools, by path.
func sums(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(e.Name(), ".") || e.IsDir():
			return nil
		}
		text, err := os.ReadFile(name)
		path, _ := filepath.Rel(dir, name) // it lies below
		all[path] = sha256.Sum256(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A machine without git, with nothing but a shell and what it brings, is enough.
func TestDemoWithoutGit(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"sh", "awk", "dirname"} {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	if d := demonstrate(t, bin); d.Landed != 21 || d.Refused != 1 || len(d.Collisions) != 0 {
		t.Errorf("%+v", d)
	}
}
