package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/flow"
	blog "lockkeeper/internal/flow/sample"
)

// These constants describe the workload: a large application with agents of a fixed duration.
const (
	runControllers = 40
	runSlots       = 12
	runPause       = 3 * time.Second
	runChecks      = 100 * time.Millisecond // assumed duration of the tests of a batch
	soloTasks      = 20
	soloFiles      = 7_000
)

// A works is a directory with the program, the scripted agent and a codebase.
type works struct {
	*bench
	dir, root string
	program   string
	agent     string
	env       []string
}

func newWorks(b *bench, name string) *works {
	dir := filepath.Join(b.dir, name)
	check(os.MkdirAll(dir, 0o700))
	w := &works{bench: b, dir: dir, root: filepath.Join(dir, "app"), program: b.build("lockkeeper", dir), agent: filepath.Join(dir, scripted.Program)}
	w.env = append(os.Environ(), "HOME="+w.dir, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "LOCKKEEPER_STORE=", scripted.ScriptVariable+"="+w.script())
	check(os.Symlink(w.program, w.agent))
	return w
}

func (w *works) script() string { return filepath.Join(w.dir, "script", "script.yaml") }

// prepare initializes the codebase and writes its configuration.
func (w *works) prepare(script []byte, config string) {
	writeFile(w.script(), script)
	w.call("init")
	config = fmt.Sprintf("agent: {command: [%s], caches: [%s]}\ngate: {allowed_write_paths: [.]}\n", w.agent, filepath.Dir(w.script())) + config
	writeFile(filepath.Join(w.root, "lockkeeper.yaml"), []byte(config))
}

// undo removes the results of the tasks, so that they land again.
func (w *works) undo() {
	made := get(filepath.Glob(filepath.Join(w.root, "file*.rb")))
	for _, path := range append(made, filepath.Join(w.root, ".pipeline"), filepath.Join(w.root, ".lockkeeper", "calls")) {
		check(os.RemoveAll(path))
	}
}

func (w *works) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.ctx, w.program, args...)
	cmd.Dir, cmd.Env = w.root, w.env
	return cmd
}

// call runs the program in the codebase.
func (w *works) call(args ...string) (out string, took time.Duration) {
	cmd := w.command(args...)
	began := time.Now()
	text, err := cmd.Output()
	took = time.Since(began)
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("lockkeeper %s: %w: %s%s", strings.Join(args, " "), err, text[max(0, len(text)-500):], failed.Stderr)
	}
	check(err)
	return string(text), took
}

// pipelineLarge runs forty controllers and compares the time with the prediction of simulate.
func pipelineLarge(b *bench) []row {
	w := newWorks(b, "large")
	large := blog.Large{Controllers: runControllers, Seed: 7, Pause: runPause}
	file := filepath.Join(w.dir, "plan.yaml")
	check(large.Write(w.root))
	writeFile(file, get(large.Plan(runChecks)))
	w.prepare(get(large.Script()), "max_test_concurrency: 4\nrun: {test_command: \""+blog.Test+" {path}\"}\n")
	said, _ := w.call("simulate", file, "--slots", fmt.Sprint(runSlots), "--json")
	var forecast struct {
		Prediction struct {
			Finish float64 `json:"finish_seconds"`
		} `json:"prediction"`
	}
	check(json.Unmarshal([]byte(said), &forecast))
	_, took := w.call("run", "--auto-decide", "all,topics=reject", "--slots", fmt.Sprint(runSlots))
	if lost := get(large.Lost(w.root)); len(lost) > 0 {
		check(fmt.Errorf("%d changes are not in the tree", len(lost)))
	}
	return []row{row{
		What: fmt.Sprintf("A run of %d controllers, agents of %s, %d slots, to what simulate predicts", runControllers, runPause, runSlots),
		Ours: took.Round(100 * time.Millisecond).String(), Peer: fmt.Sprintf("%.1fs", forecast.Prediction.Finish),
		How: "The whole command runs, with scripted agents in workspaces and a sandbox, contended files, tests and landing. `simulate` is given the agents' time, and a tenth of a second for the tests of a batch.",
	}.atMost(took.Seconds()/forecast.Prediction.Finish, 1.1, "%.2f×")}
}

// pipelineCall measures what the program adds to one call of an agent, while its slot is taken and
// otherwise.
func pipelineCall(b *bench) []row {
	w := newWorks(b, "solo")
	layeredFiles(w.root, soloFiles)
	var tasks strings.Builder
	tasks.WriteString("tasks:\n")
	for i := range soloTasks {
		fmt.Fprintf(&tasks, "  - {name: t%d, prompt: Do it., writes: [file%d.rb]}\n", i, i)
	}
	script := "calls:\n- match: '^# task \\S*t(\\d+)'\n  steps: [{write: {path: 'file$1.rb', content: \"$1\\n\"}}]\n  result: {structured: {summary: done}}\n" +
		"- match: '^# verify '\n  result: {structured: {verdict: pass, report: fine, issues: []}}\n"
	writeFile(filepath.Join(w.root, "tasks.yaml"), []byte(tasks.String()))
	w.prepare([]byte(script), "")
	b.letRest()
	var each, inside, bare []float64
	for round := range b.rounds {
		writeFile(filepath.Join(w.root, "lib.rb"), fmt.Append(nil, round))
		_, took := w.call("run", "--plan", "tasks.yaml", "--slots", "1", "--new")
		_, idle := w.call("run", "--plan", "tasks.yaml", "--slots", "1", "--new") // nothing is left to do
		each = append(each, float64(took-idle)/(2*soloTasks))
		for _, c := range w.calls() {
			inside = append(inside, float64(c.Took))
		}
		for range soloTasks {
			cmd := exec.CommandContext(b.ctx, w.agent, "-p", "--output-format=stream-json", "--verbose", "--dangerously-skip-permissions")
			cmd.Dir, cmd.Env, cmd.Stdin = w.dir, w.env, strings.NewReader("# verify x")
			_, alone := timed(cmd)
			bare = append(bare, float64(alone))
		}
		w.undo()
	}
	how := fmt.Sprintf("%d tasks run one after the other on a tree of %d files, with workspaces, sandbox, documents and landing. Each calls an agent to apply and to verify.", soloTasks, soloFiles)
	return []row{
		row{What: "What a run adds to one call of an agent, outside its slot", Ours: ns(median(each)), Peer: ns(median(inside)) + " (in the slot)", How: how}.
			atMost((median(each)-median(inside))/1e6, 60, "%.0f ms"),
		row{What: "What a run adds to one call of an agent, in its slot", Ours: ns(median(inside)), Peer: ns(median(bare)) + " (the agent alone)",
			How: how + " The time from before the start of the agent to after the end of its last process, as recorded.",
		}.atMost((median(inside)-median(bare))/1e6, 10, "%.0f ms"),
	}
}

// calls reads the records of all calls.
func (w *works) calls() (list []flow.Call) {
	for _, name := range get(filepath.Glob(filepath.Join(w.root, ".lockkeeper", "calls", "*", "*", "call.json"))) {
		var c flow.Call
		check(json.Unmarshal(get(os.ReadFile(name)), &c))
		list = append(list, c)
	}
	return list
}
