package largerun

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/project"
)

// A cause is why a batch failed.
type cause int

const (
	missingPage cause = iota // the same test fails
	forbidden                // another test fails
	unanswered               // the agent ends with the same message
	causes
)

func (r *Run) causeOf(u *unit) cause { return cause(u.number) % causes }

const longPrompt = "claude: the prompt is too long: 213,400 tokens, and the limit is 200,000"

// failingTest returns the test that fails, and its message.
func (c cause) failingTest() (name, message string) {
	if c == missingPage {
		return "PaginationTest#test_second_page_is_not_empty", "Expected [] to not be empty."
	}
	return "AuthenticationTest#test_guests_are_sent_to_the_login", "Expected response to be a <3XX: redirect>, but was a <200: OK>"
}

// failTests records failing tests and an attempt to fix them, and returns the failure of the batch.
func (r *Run) failTests(w *working, since time.Time) error {
	r.t.Helper()
	test, message := r.causeOf(w.unit).failingTest()
	output := fmt.Sprintf("Run options: --seed %d\n\n# Running:\n\n.F\n\nFailure:\n%s [test/controllers/shared_test.rb:14]:\n%s\n\nbin/rails test test/controllers/shared_test.rb:14\n\n2 runs, 3 assertions, 1 failures, 0 errors, 0 skips\n", 1000+w.unit.number, test, message)
	half := since.Add(w.ends.Sub(since) / 2)
	r.check(w, since, half, 1, output)
	r.endCall(w, fixTests, half, w.ends, "")
	last := r.check(w, half, w.ends, 1, output)
	return fmt.Errorf("test: %q failed with exit status %d after %d fixes: %s; its output: %s", last.Command, last.Exit, 1, last.Last, last.Output)
}

// A callRecord has the fields of call.json that viewers read.
type callRecord struct {
	run.PastCall
	Cost agent.Spent `json:"cost"`
	Used bool        `json:"used"`
}

// endCall records a call of an agent that ended.
func (r *Run) endCall(w *working, phase string, began, ended time.Time, failure string) flow.Call {
	r.t.Helper()
	dir := r.callFolder(w, phase)
	usd := float64(5+r.chance.IntN(60)) / 100
	call := flow.Call{Agent: "claude", Phase: phase, Model: "claude-sonnet-5", Session: fmt.Sprintf("s%06d", r.calls), USD: usd, Tokens: int64(20_000 + r.chance.IntN(90_000)), Turns: 3 + r.chance.IntN(20),
		Began: began, Took: ended.Sub(began), Error: failure, Output: r.fromRoot(filepath.Join(dir, "output"))}
	text, err := json.MarshalIndent(callRecord{PastCall: run.PastCall{Call: call, Flow: r.flow.Name, Unit: w.unit.name, Run: r.id}, Used: true,
		Cost: agent.Spent{MicroUSD: int64(usd * 1e6), Tokens: call.Tokens, Calls: 1}}, "", "  ")
	must(r.t, err)
	answer, err := json.Marshal(map[string]any{"type": "result", "subtype": "success", "is_error": failure != "", "result": "The " + phase + " of " + w.name() + " is done.",
		"num_turns": call.Turns, "duration_ms": call.Took.Milliseconds(), "total_cost_usd": usd})
	must(r.t, err)
	var log strings.Builder
	for line := range 8 {
		log.WriteString(logLine(began.Add(time.Duration(line)*call.Took/8), line, w))
	}
	files := map[string]string{"call.json": string(text), "output": string(answer) + "\n"}
	if phase != fixTests { // there are thousands of these
		files["log"], files["stderr"] = log.String(), ""
		files["output.prompt"] = "# " + phase + " " + w.name() + "\n\nRead " + controllerOf(w.unit) + " and page its list.\n"
	}
	r.files(dir, began, ended, files)
	r.calls++
	return call
}

// startCall records a call that still runs.
func (r *Run) startCall(w *working) {
	r.t.Helper()
	dir := r.callFolder(w, w.phase)
	w.log = filepath.Join(dir, "log")
	r.files(dir, w.began, r.now(), map[string]string{"output": "", "log": logLine(w.began, 0, w), "output.prompt": "# apply " + w.name() + "\n"})
}

// logLine returns a line of the log of a call, as people read it.
func logLine(at time.Time, number int, w *working) string {
	what := []string{"tool_use    Read " + controllerOf(w.unit), "tool_result class Controller < ApplicationController", "text        The list has no limit, so I add pages.",
		"tool_use    Edit " + controllerOf(w.unit), "usage       21,300 tokens"}
	return at.Local().Format("15:04:05") + " " + what[number%len(what)] + fmt.Sprintf(" (%d)\n", number)
}

// check records a run of the tests of a batch.
func (r *Run) check(w *working, began, ended time.Time, exit int, output string) flow.CheckRun {
	r.t.Helper()
	dir := r.callFolder(w, test)
	r.files(dir, began, ended, map[string]string{"check.json": fmt.Sprintf(`{"took": %d}`, ended.Sub(began)), "output": output})
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return flow.CheckRun{Command: sample.Test + " test/controllers/" + w.unit.name + "_controller_test.rb", Exit: exit, Took: ended.Sub(began),
		Output: r.fromRoot(filepath.Join(dir, "output")), Last: lines[len(lines)-1]}
}

func (r *Run) fromRoot(file string) string {
	r.t.Helper()
	rel, err := filepath.Rel(r.App.Root.Dir(), file)
	must(r.t, err)
	return filepath.ToSlash(rel)
}

// callFolder makes the folder of the next call for a phase of a piece of work.
func (r *Run) callFolder(w *working, phase string) string {
	r.t.Helper()
	purpose := r.flow.Name + "/" + w.name() + "/" + phase
	if w.batch != nil {
		purpose += "@" + flow.Digest(*w.batch)[:8]
	}
	of := r.App.Below(project.DirName + "/calls/" + documents.KeyName(purpose))
	for n := 1; ; n++ {
		dir := filepath.Join(of, strconv.Itoa(n))
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			must(r.t, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "item"), []byte(w.item), 0o600), os.WriteFile(filepath.Join(dir, "workspace"), nil, 0o600))
			return dir
		}
	}
}

// files writes the files of a call. Their times say when it began and ended.
func (r *Run) files(dir string, began, ended time.Time, files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		must(r.t, os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, ended, ended))
	}
	must(r.t, os.Chtimes(filepath.Join(dir, "workspace"), began, began))
}

// fill records further calls of work that ended, until the run has its number of calls.
func (r *Run) fill() {
	r.t.Helper()
	var ended []*working
	for _, u := range r.units {
		if u.ended != nil {
			ended = append(ended, u.ended)
		}
	}
	for i := 0; r.calls < r.opt.Calls && len(ended) > 0; i++ {
		w := ended[i%len(ended)]
		r.endCall(w, fixTests, w.began, w.ends, "")
	}
}
