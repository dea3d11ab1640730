package run_test

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/sample"
)

// childVariable tells a copy of this program which scene to conduct.
const childVariable = "LOCKKEEPER_PIPELINE_CHILD"

// beginFD is the file descriptor that a child closes when it begins to conduct.
const beginFD = 3

// A child is a scene that another process conducts.
type child struct{ Dir, Flow, Policy string }

// TestChild conducts a scene until it is done, or killed.
func TestChild(t *testing.T) {
	text := os.Getenv(childVariable)
	if text == "" {
		return // only another test sets the variable
	}
	var c child
	must(t, json.Unmarshal([]byte(text), &c))
	s := &scene{t: t, root: filepath.Join(c.Dir, "blog"), side: filepath.Join(c.Dir, "side"), script: filepath.Join(c.Dir, "script", "script.yaml")}
	s.assemble(stores["SQLite"](t, s.side), c.Flow)
	must(t, os.NewFile(beginFD, "begin").Close())
	out := s.run(c.Policy)
	if out.Failed > 0 {
		t.Errorf("%+v", out.State.Units)
	}
}

// A conductor is a process that conducts a scene.
type conductor struct {
	cmd   *exec.Cmd
	ended chan error
}

// start runs this program as a separate process that conducts the scene, and returns when the
// process has begun.
func (c child) start(t testing.TB) *conductor {
	t.Helper()
	text, err := json.Marshal(c)
	must(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v", "-test.timeout="+hung.String())
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	log, err := os.OpenFile(c.log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	must(t, err)
	begins, begun, err := os.Pipe()
	must(t, err)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{begun}
	must(t, cmd.Start())
	must(t, log.Close(), begun.Close()) // the child has its own descriptors
	running := &conductor{cmd: cmd, ended: make(chan error, 1)}
	go func() { running.ended <- cmd.Wait() }()
	_, err = io.Copy(io.Discard, begins)
	must(t, err, begins.Close())
	return running
}

func (c child) log() string { return filepath.Join(c.Dir, "child.log") }

// said returns the end of the log of the scene's conductors.
func (c child) said() []byte {
	log, _ := os.ReadFile(c.log()) // only for a message
	return log[max(0, len(log)-20_000):]
}

// killAfter kills the conductor after d, unless it ends earlier.
func (c *conductor) killAfter(t testing.TB, d time.Duration) (killed bool, err error) {
	select {
	case <-time.After(d):
		if err := c.cmd.Process.Kill(); errors.Is(err, os.ErrProcessDone) {
			return false, <-c.ended // it ended at the same moment
		} else {
			must(t, err)
		}
		<-c.ended
		return true, nil
	case err := <-c.ended:
		return false, err
	}
}

// kills returns how often a test kills conductors.
func kills(t testing.TB, usual int) int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil || n < 1 {
		return usual
	}
	return usual * n
}

// The conductor is killed at random moments and started again. The tree ends as after an
// undisturbed run, no document is lost, and no completed call is repeated. The test uses as many
// scenes as it needs for every kill to hit a running process.
//
// shows: PL-4 PL-60 PL-64 GP-17 SW-71 SW-74
func TestKilled(t *testing.T) {
	for _, name := range []string{"controllers", "screens"} {
		t.Run(name, func(t *testing.T) {
			const policy = "impact>=medium,topics=reject"
			whole := newScene(t, "memory", name)
			began := time.Now()
			whole.run(policy)
			took, want := time.Since(began), whole.files()

			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			left := kills(t, 25)
			for scenes := 1; left > 0; scenes++ {
				s := newScene(t, "SQLite", name)
				c := child{Dir: filepath.Dir(s.root), Flow: name, Policy: policy}
				hit := s.killOften(c, left, func() time.Duration { return time.Duration(random.Int64N(int64(took / 3))) })
				left -= hit
				t.Logf("scene %d: %d conductors were killed, %d documents", scenes, hit, len(s.documents()))
				s.same(want)
				s.green()
				s.askedOnce()
				s.noCopies()
				if t.Failed() {
					t.Fatalf("what the conductors said:\n%s", c.said())
				}
			}
		})
	}
}

// killOften kills the conductor of the scene up to times times, and lets the last one finish. It
// returns the number of kills.
func (s *scene) killOften(c child, times int, after func() time.Duration) (killed int) {
	t := s.t
	t.Helper()
	documents := map[string]bool{}
	for killed < times {
		hit, err := c.start(t).killAfter(t, after())
		if err != nil {
			t.Fatalf("a conductor: %v\n%s", err, c.said())
		}
		now := s.documents()
		for doc := range documents {
			if !now[doc] {
				t.Fatalf("kill %d: %s is gone\n%s", killed, doc, c.said())
			}
		}
		documents = now
		if !hit {
			break
		}
		killed++
	}
	if err := <-c.start(t).ended; err != nil {
		t.Fatalf("the last conductor: %v\n%s", err, c.said())
	}
	return killed
}

// same compares the tree with that of an undisturbed run.
func (s *scene) same(want map[string]string) {
	s.t.Helper()
	got := s.files()
	for path := range want {
		if got[path] != want[path] {
			s.t.Errorf("%s differs from that of an undisturbed run:\n%s\nwant\n%s", path, got[path], want[path])
		}
	}
	if len(got) != len(want) {
		s.t.Errorf("%d files, and an undisturbed run has %d", len(got), len(want))
	}
}

// noCopies fails the test if a workspace is left, or more than the base for the next run.
func (s *scene) noCopies() {
	s.t.Helper()
	dir := filepath.Join(s.side, "workspaces")
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	must(s.t, err)
	bases, err := filepath.Glob(filepath.Join(dir, "base-*"))
	must(s.t, err)
	if len(bases) > 1 || len(left) > len(bases) {
		gone, err := workspace.Abandoned(s.t.Context(), dir)
		s.t.Errorf("copies are left: %v; abandoned are %+v, %v", left, gone, err)
	}
}

// documents returns the existing documents.
func (s *scene) documents() map[string]bool {
	s.t.Helper()
	all := map[string]bool{}
	for _, pattern := range []string{".pipeline/*/*.json", ".pipeline/*/*/*.json", ".pipeline/*/batches/*/*.json", ".pipeline/*/*/batches/*/*.json", ".analysis/*/*/*/*.json"} {
		names, err := filepath.Glob(filepath.Join(s.root, pattern))
		must(s.t, err)
		for _, name := range names {
			if base := filepath.Base(name); base != "progress.json" && !strings.Contains(base, "draft") && base != "started.json" {
				all[name] = true
			}
		}
	}
	return all
}

// askedOnce fails the test if a question was asked again although its answer was complete.
func (s *scene) askedOnce() {
	s.t.Helper()
	outputs, err := filepath.Glob(filepath.Join(s.opt.Calls, "*", "*", "output"))
	must(s.t, err)
	complete := map[string]int{}
	for _, output := range outputs {
		if _, err := os.Stat(output + ".prompt"); err != nil {
			continue // a check
		}
		_, finished, _ := agent.Completed(agent.Claude{}, agent.Files{Output: output, Log: filepath.Join(filepath.Dir(output), "stderr")}, nil)
		if finished {
			complete[filepath.Base(filepath.Dir(filepath.Dir(output)))]++
		}
	}
	if len(complete) == 0 {
		s.t.Error("no call is on record")
	}
	for purpose, n := range complete {
		if n > 1 {
			s.t.Errorf("%s was answered %d times", purpose, n)
		}
	}
}

// Forty controllers share twelve slots and contended files. No two agents hold conflicting locks,
// nothing is lost, and the landed files equal the tested ones.
//
// shows: SW-1 SW-12 SW-23 PL-9 PL-26
func TestManyControllers(t *testing.T) {
	large := sample.Large{Controllers: 40, Seed: 7}
	s := newScene(t, "SQLite", "controllers")
	must(t, os.RemoveAll(s.root), large.Write(s.root), os.Mkdir(filepath.Join(s.root, ".lockkeeper"), 0o700))
	script, err := large.Script()
	must(t, err)
	must(t, os.WriteFile(s.script, script, 0o600))
	s.reassemble("controllers")
	s.opt.Limits.Agents = 12
	before := s.files()
	out := s.run("all,topics=reject")
	if out.Complete != large.Controllers {
		t.Fatalf("%d complete, %d failed: %+v", out.Complete, out.Failed, out.State.Units)
	}
	if lost, err := large.Lost(s.root); err != nil || len(lost) != 0 {
		t.Errorf("lost: %v, %v", lost, err)
	}
	s.covered(before, s.files())
	s.apart()
	s.landedAsTested(out)
}

// landedAsTested compares the landed files with the tested and verified ones.
func (s *scene) landedAsTested(out *run.Outcome) {
	s.t.Helper()
	for _, u := range out.State.Units {
		unit, err := s.opt.Progress.Unit(s.t.Context(), u.Name)
		must(s.t, err)
		for _, b := range unit.Batches {
			if b.Landed == nil || b.CI == nil || b.Verification == nil {
				s.t.Errorf("%s/%s has not all of its documents", u.Name, b.ID)
				continue
			}
			for _, files := range [][]flow.File{b.CI.Files, b.Verification.Files} {
				if !equalFiles(files, b.Landed.Files) {
					s.t.Errorf("%s/%s landed other files than were tested", u.Name, b.ID)
				}
			}
		}
	}
}

func equalFiles(a, b []flow.File) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
