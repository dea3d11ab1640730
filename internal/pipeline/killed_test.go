package pipeline_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
	"lockkeeper/internal/sample"
	"lockkeeper/internal/workspace"
)

// childVariable tells a copy of this program which scene to conduct.
const childVariable = "LOCKKEEPER_PIPELINE_CHILD"

// child is a scene that another process conducts.
type child struct{ Dir, Flow, Policy, Space string }

// TestChild conducts a scene until it is done, or killed.
func TestChild(t *testing.T) {
	text := os.Getenv(childVariable)
	if text == "" {
		return // only another test gives it something to do
	}
	var c child
	must(t, json.Unmarshal([]byte(text), &c))
	s := &scene{t: t, root: filepath.Join(c.Dir, "blog"), side: filepath.Join(c.Dir, "side"), script: filepath.Join(c.Dir, "script", "script.yaml")}
	store := "SQLite"
	if c.Space != "" {
		store = "PostgreSQL"
	}
	s.assemble(stores[store](t, s.side), c.Flow)
	out := s.run(c.Policy)
	if out.Failed > 0 {
		t.Errorf("%+v", out.State.Units)
	}
}

// start makes this program conduct the scene in a process of its own.
func (c child) start(t testing.TB) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(c)
	must(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v", "-test.timeout=170s")
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	log, err := os.OpenFile(filepath.Join(c.Dir, "child.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	must(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	log.Close() // it is the child's
	return cmd
}

// kills is how often conductors are killed.
func kills(t testing.TB, usual int) int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil || n < 1 {
		return usual
	}
	return usual * n
}

// Whoever conducts is killed at random moments and started again: the tree ends as if
// nothing had happened, no document is lost, and no agent is asked again whose answer was
// complete.
//
// shows: PL-4 PL-60 PL-61 PL-62 PL-63 PL-64 PL-85 GP-17 SW-71 SW-74
func TestKilled(t *testing.T) {
	for _, name := range []string{"controllers", "screens"} {
		t.Run(name, func(t *testing.T) {
			policy := "impact>=medium,topics=reject"
			whole := newScene(t, "memory", name)
			whole.run(policy)
			want := whole.files()

			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			s := newScene(t, "SQLite", name)
			c := child{Dir: filepath.Dir(s.root), Flow: name, Policy: policy}
			documents := map[string]bool{}
			for n := range kills(t, 5) {
				cmd := c.start(t)
				ended := make(chan struct{})
				go func() {
					cmd.Wait()
					close(ended)
				}()
				select {
				case <-time.After(time.Duration(500+random.IntN(4000)) * time.Millisecond):
					must(t, cmd.Process.Kill())
					<-ended
				case <-ended: // it was done before
				}
				now := s.documents()
				for doc := range documents {
					if !now[doc] {
						t.Fatalf("kill %d: %s is gone", n, doc)
					}
				}
				documents = now
			}
			last := c.start(t)
			if err := last.Wait(); err != nil {
				log, _ := os.ReadFile(filepath.Join(c.Dir, "child.log"))
				t.Fatalf("the last conductor: %v\n%s", err, log[max(0, len(log)-6000):])
			}
			got := s.files()
			if !maps.Equal(got, want) {
				for path := range want {
					if got[path] != want[path] {
						t.Errorf("%s differs from that of an undisturbed run:\n%s\nwant\n%s", path, got[path], want[path])
					}
				}
			}
			s.green()
			s.askedOnce()
			if left, err := filepath.Glob(filepath.Join(s.side, "workspaces", "*")); err != nil || len(left) != 0 {
				log, _ := os.ReadFile(filepath.Join(c.Dir, "child.log"))
				gone, bad := workspace.Abandoned(t.Context(), filepath.Join(s.side, "workspaces"))
				ls, _ := exec.Command("sh", "-c", "ls -la "+s.side+"/workspaces/*; grep -l FLOCK /proc/locks; cat /proc/locks").Output()
				t.Errorf("copies are left: %v, %v\n%s\n%+v %v\n%s", left, err, log, gone, bad, ls)
			}
		})
	}
}

// documents lists the documents that are there.
func (s *scene) documents() map[string]bool {
	s.t.Helper()
	all := map[string]bool{}
	for _, pattern := range []string{".pipeline/*/*.json", ".pipeline/*/batches/*/*.json", ".analysis/*/*/*/*.json"} {
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

// askedOnce reports questions whose complete answer was thrown away.
func (s *scene) askedOnce() {
	s.t.Helper()
	outputs, err := filepath.Glob(filepath.Join(s.opt.Calls, "*", "*", "output"))
	must(s.t, err)
	complete := map[string]int{}
	for _, output := range outputs {
		if _, err := os.Stat(output + ".prompt"); err != nil {
			continue // of a test
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
			log, _ := os.ReadFile(filepath.Join(filepath.Dir(s.root), "child.log"))
			s.t.Errorf("%s was answered %d times\n%s", purpose, n, log)
		}
	}
}

// Forty controllers, twelve slots, contended files: no two agents ever hold conflicting
// locks, nothing is lost, and what landed is what was tested.
//
// shows: SW-1 SW-4 SW-12 SW-23 PL-9 PL-26
func TestForty(t *testing.T) {
	large := sample.Large{Controllers: 12, Seed: 7}
	if os.Getenv("LOCKKEEPER_TORTURE") != "" {
		large.Controllers = 40
	}
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

// landedAsTested holds what landed against what was tested and verified.
func (s *scene) landedAsTested(out *pipeline.Outcome) {
	s.t.Helper()
	for _, u := range out.State.Units {
		unit, err := s.opt.Book.Unit(s.t.Context(), u.Name)
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
