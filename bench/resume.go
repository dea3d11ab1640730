package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/documents"
	blog "lockkeeper/internal/flow/sample"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/view"
	"lockkeeper/store"
)

// These are the size of the interrupted run, and what resuming and showing it may cost.
const (
	resumeUnits  = 1_000
	resumeCalls  = 10 // per unit
	resumeLimit  = 2.0
	resumeMemory = 150.0
	resumeStatus = 300.0
	resumeBoard  = 300.0
)

// pipelineResume measures how long a run that was killed takes until its first dispatch, and how
// long a person waits for its status.
func pipelineResume(b *bench) []row {
	w := newWorks(b, "resume")
	check(blog.Large{Controllers: resumeUnits, Seed: 7}.Write(w.root))
	first := "area001/page0001"
	w.prepare([]byte("calls:\n- match: '^# verify "+first+"'\n  result: {structured: {verdict: pass, report: fine, issues: []}}\n- match: '^# \\w+ "+first+"'\n  result: {structured: {summary: nothing}}\n- match: .\n  steps: [{sleep: 10m}]\n"), "run: {baseline: off}\n")
	p := get(project.Open(b.ctx, project.Settings{Dir: w.root, Env: func(variable string) (string, bool) {
		if variable != "HOME" {
			return "", false
		}
		return w.dir, true
	}}))
	b.cleanup(p.Close)
	units, _, err := conduct.Discovered(p, "controllers")
	check(err)
	tracker, _, _, err := conduct.OpenDocuments(p, "controllers")
	check(err)
	for _, unit := range units {
		plan(b.ctx, tracker, unit, unit)
	}
	w.call("run", "--only", first, "--no-ui", "--slots", "1") // makes a record of each call
	w.copyCalls(units)
	w.resume(p) // queues all batches
	var took, memory, status []float64
	for range b.rounds {
		seconds, peak := w.resume(p)
		took, memory = append(took, seconds), append(memory, peak)
		_, each := w.call("status")
		status = append(status, float64(each)/1e6)
	}
	began := monotonic()
	board := get(view.New(p).Board(b.ctx, ""))
	shown := float64(monotonic()-began) / 1e6
	if len(board.Units) != resumeUnits {
		check(fmt.Errorf("the board has %d units", len(board.Units)))
	}
	how := fmt.Sprintf("A run of %d controllers with three planned batches each and %d recorded calls was killed. ", resumeUnits, resumeUnits*resumeCalls)
	what := fmt.Sprintf("%d units and %d calls: ", resumeUnits, resumeUnits*resumeCalls)
	return []row{
		row{What: what + "from the start of `run` to its first dispatch", Ours: fmt.Sprintf("%.2f s", median(took)), Peer: "–", How: how + "The next one starts the first agent."}.atMost(median(took), resumeLimit, "%.2f s"),
		row{What: what + "memory of `run` at the first dispatch", Ours: fmt.Sprintf("%.0f MB", median(memory)), Peer: "–", How: how + "The largest resident memory of the process until then."}.atMost(median(memory), resumeMemory, "%.0f MB"),
		row{What: what + "a whole `lockkeeper status`", Ours: ms(median(status)), Peer: "–", How: how}.atMost(median(status), resumeStatus, "%.0f ms"),
		row{What: what + "the board, read for the first time", Ours: ms(shown), Peer: "–", How: how}.atMost(shown, resumeBoard, "%.0f ms"),
	}
}

// resume starts the run, kills it at its first dispatch, and returns how many seconds that took and
// the memory of the process in megabytes.
func (w *works) resume(p *project.Project) (seconds, memory float64) {
	cmd := w.command("run", "--no-ui", "--json", "--slots", "4")
	said := &bytes.Buffer{}
	cmd.Stderr = said
	began := time.Now()
	check(cmd.Start())
	defer func() {
		check(cmd.Process.Kill())
		cmd.Wait() // was killed
	}()
	for ; time.Since(began) < 5*time.Minute; time.Sleep(5 * time.Millisecond) {
		var running []*lockkeeper.Item
		check(p.Store.View(w.ctx, func(r store.Reader) (err error) {
			running, err = r.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: 100})
			return err
		}))
		for _, it := range running {
			if it.DispatchedAt.After(began) {
				return it.DispatchedAt.Sub(began).Seconds(), peakMemory(cmd.Process.Pid)
			}
		}
	}
	check(fmt.Errorf("nothing was dispatched: %s", said))
	return 0, 0
}

// peakMemory returns the largest resident memory of a process so far, in megabytes.
func peakMemory(pid int) float64 {
	for line := range strings.Lines(string(get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))))) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 64)
			check(err)
			return kilobytes / 1000
		}
	}
	check(errors.New("the kernel does not report the peak memory"))
	return 0
}

// copyCalls gives every unit the records of calls for its first phases, as copies of a record that
// a run wrote.
func (w *works) copyCalls(units []string) {
	calls := filepath.Join(w.root, ".lockkeeper", "calls")
	made := get(filepath.Glob(filepath.Join(calls, "*", "1", "call.json")))
	if len(made) == 0 {
		check(errors.New("no call was recorded"))
	}
	from := filepath.Dir(made[0])
	var record map[string]any
	check(json.Unmarshal(get(os.ReadFile(made[0])), &record))
	phases := []string{"analyze", "extract", "synthesize", "audit", "batch_plan"}
	for _, unit := range units {
		for i := range resumeCalls {
			phase := phases[i%len(phases)]
			to := filepath.Join(calls, documents.KeyName("controllers/"+unit+"/"+phase), strconv.Itoa(i/len(phases)+1))
			check(os.MkdirAll(filepath.Dir(to), 0o700))
			check(os.CopyFS(to, os.DirFS(from)))
			record["unit"], record["phase"] = unit, phase
			check(os.Remove(filepath.Join(to, "call.json")))
			writeFile(filepath.Join(to, "call.json"), get(json.MarshalIndent(record, "", "  ")))
		}
	}
}
