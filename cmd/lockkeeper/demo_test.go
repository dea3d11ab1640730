package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lockkeeper"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/git/gittest"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/view"
)

// A demonstrated is the result of a demonstration whose files were kept.
type demonstrated struct {
	Landed     int      `json:"writes_landed"`
	Refused    int      `json:"writes_refused"`
	Collisions []string `json:"collisions"`
	Files      int      `json:"files_changed"`
	Batches    int      `json:"batches"`
	Dir        string   `json:"dir"`
}

// demonstrate runs the demonstration with the programs of a search path. While it runs,
// demonstrate calls the meanwhile functions with its process and directory.
func demonstrate(t *testing.T, path string, meanwhile ...func(*os.Process, string)) (d demonstrated) {
	t.Helper()
	temp, err := os.MkdirTemp("", "d") // short, because it contains sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(temp, "lockkeeper") // the program depends on its own name
	if err := copyProgram(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "demo", "--fast", "--keep", "--json")
	cmd.Env = []string{"PATH=" + path, "TMPDIR=" + temp, "HOME=" + temp, "GORACE=atexit_sleep_ms=0"}
	cmd.Env = append(cmd.Env, gittest.HostileEnv(t)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range meanwhile {
		f(cmd.Process, temp)
	}
	err = cmd.Wait()
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &d)
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), said.String())
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

// noneLeft fails the test if a process still runs a program of a directory or works there.
func noneLeft(t *testing.T, dir string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range all {
		for _, link := range []string{"exe", "cwd"} {
			if at, err := os.Readlink(filepath.Join(proc, link)); err == nil && strings.HasPrefix(at, dir+"/") { // processes of other users are not visible
				t.Errorf("process %s is left: %s is %s", filepath.Base(proc), link, at)
			}
		}
	}
}

// The counts that the demo prints match the codebase that it leaves.
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
	a := openDemo(t, d.Dir)
	defer a.Close()
	rec, err := view.ReadRecord(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	counted(t, d, rec, after)
	host, err := process.NewHost("")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := a.Locks.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Process == nil || host.Liveness(*e.Process) != lockkeeper.ProcessDead {
			t.Errorf("%s still holds grant %s", e.Holder, e.ID)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", d.Dir, "log", "--oneline").Output(); err == nil && bytes.Count(out, []byte("\n")) != 1+d.Batches {
		t.Errorf("there is not one commit for each batch:\n%s", out)
	}
}

// The demonstration kills its run in the middle even if the demonstration itself is paused
// (SIGSTOP) before that. The run waits for it and cannot finish meanwhile.
func TestDemoStopped(t *testing.T) {
	d := demonstrate(t, os.Getenv("PATH"), func(demo *os.Process, temp string) {
		run := waitFor(t, "a run", func() (int, bool) { return childNamed(demo.Pid, "run") })
		if err := demo.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer demo.Signal(syscall.SIGCONT)
		dirs, err := filepath.Glob(filepath.Join(temp, "lockkeeper-demo-*", "blog"))
		if err != nil || len(dirs) != 1 {
			t.Fatal(dirs, err)
		}
		a := openDemo(t, dirs[0])
		defer a.Close()
		same, seen := 0, 0 // number of reads since the event log last changed
		waitFor(t, "a run that goes no further", func() (struct{}, bool) {
			rec, err := view.ReadRecord(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if same++; len(rec.Events) != seen {
				same, seen = 0, len(rec.Events)
			}
			return struct{}{}, len(rec.Landings) >= 3 && dispatched(rec) == 1 && same > 100 || ended(run)
		})
	})
	if d.Landed != 21 || d.Refused != 1 || len(d.Collisions) != 0 {
		t.Errorf("%+v", d)
	}
}

// openDemo opens the application of a demonstration.
func openDemo(t *testing.T, dir string) *project.Project {
	t.Helper()
	a, err := project.Open(t.Context(), project.Settings{Dir: dir, Env: func(name string) (string, bool) {
		return filepath.Dir(dir), name == "XDG_STATE_HOME"
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func dispatched(rec *view.Record) (n int) {
	for _, it := range rec.Items {
		if it.Status == lockkeeper.ItemDispatched {
			n++
		}
	}
	return n
}

// childNamed finds the child of a process that runs a Lockkeeper command.
func childNamed(parent int, command string) (pid int, found bool) {
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent)) // the pattern is valid
	for _, file := range children {
		list, _ := os.ReadFile(file) // a thread may have ended
		for _, word := range strings.Fields(string(list)) {
			args, _ := os.ReadFile("/proc/" + word + "/cmdline") // a child may have ended, too
			if words := strings.Split(string(args), "\x00"); len(words) > 1 && words[1] == command {
				pid, err := strconv.Atoi(word)
				return pid, err == nil
			}
		}
	}
	return 0, false
}

// ended reports whether a process has ended, even if its parent has not noticed.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// counted compares the printed figures with the event log.
func counted(t *testing.T, d demonstrated, rec *view.Record, after map[string][32]byte) {
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

// sums returns the hash of each file of a codebase by path, except those of tools.
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
		path, _ := filepath.Rel(dir, name) // name is below dir
		all[path] = sha256.Sum256(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The demonstration needs only a shell and its standard tools, not git.
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
