package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper/internal/agent/scripted"
	blog "lockkeeper/internal/flow/sample"
)

// The workload: a large application with agents of a fixed duration.
const (
	runControllers = 40
	runSlots       = 12
	runPause       = 3 * time.Second
	runChecks      = 100 * time.Millisecond // what a batch's tests are taken for
	soloTasks      = 20
)

// works is a directory with the program, the scripted agent and a codebase.
type works struct {
	ctx       context.Context
	dir, root string
	program   string
	agent     string
	env       []string
}

func newWorks(ctx context.Context, b *bench, name string) (*works, error) {
	w := &works{ctx: ctx, dir: filepath.Join(b.dir, name)}
	w.root, w.program, w.agent = filepath.Join(w.dir, "app"), filepath.Join(w.dir, "lockkeeper"), filepath.Join(w.dir, scripted.Program)
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", w.program, "./cmd/lockkeeper")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, skipped(fmt.Sprintf("the command does not build: %.300s", out))
	}
	w.env = append(os.Environ(), "HOME="+w.dir, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "LOCKKEEPER_STORE=", scripted.ScriptVariable+"="+w.script())
	return w, os.Symlink(w.program, w.agent)
}

func (w *works) script() string { return filepath.Join(w.dir, "script", "script.yaml") }

// prepare makes the codebase lockable, with a configuration.
func (w *works) prepare(script []byte, config string) error {
	if err := errors.Join(os.MkdirAll(filepath.Dir(w.script()), 0o700), os.WriteFile(w.script(), script, 0o600)); err != nil {
		return err
	}
	if _, _, err := w.call("init"); err != nil {
		return err
	}
	config = fmt.Sprintf("agent: {command: [%s], caches: [%s]}\ngate: {allowed_write_paths: [.]}\n", w.agent, filepath.Dir(w.script())) + config
	return os.WriteFile(filepath.Join(w.root, "lockkeeper.yaml"), []byte(config), 0o600)
}

// undo makes the tasks due again: their results are removed, so that they land again.
func (w *works) undo() error {
	made, err := filepath.Glob(filepath.Join(w.root, "file*.rb"))
	for _, path := range append(made, filepath.Join(w.root, ".pipeline"), filepath.Join(w.root, ".lockkeeper", "calls")) {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// call runs the program in the codebase.
func (w *works) call(args ...string) (out string, took time.Duration, err error) {
	cmd := exec.CommandContext(w.ctx, w.program, args...)
	cmd.Dir, cmd.Env = w.root, w.env
	began := time.Now()
	text, err := cmd.Output()
	took = time.Since(began)
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("lockkeeper %s: %w: %s%s", strings.Join(args, " "), err, text[max(0, len(text)-500):], failed.Stderr)
	}
	return string(text), took, err
}

// pipelineLarge runs forty controllers and compares with what simulate says of them.
func pipelineLarge(ctx context.Context, b *bench) ([]row, error) {
	w, err := newWorks(ctx, b, "large")
	if err != nil {
		return nil, err
	}
	large := blog.Large{Controllers: runControllers, Seed: 7, Pause: runPause}
	script, err := large.Script()
	if err != nil {
		return nil, err
	}
	plan, err := large.Plan(runChecks)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(w.dir, "plan.yaml")
	err = errors.Join(large.Write(w.root), os.WriteFile(file, plan, 0o600),
		w.prepare(script, "max_test_concurrency: 4\nrun: {test_command: \""+blog.Test+" {path}\"}\n"))
	if err != nil {
		return nil, err
	}
	said, _, err := w.call("simulate", file, "--slots", fmt.Sprint(runSlots), "--json")
	if err != nil {
		return nil, err
	}
	var forecast struct {
		Prediction struct {
			Finish float64 `json:"finish_seconds"`
		} `json:"prediction"`
	}
	if err := json.Unmarshal([]byte(said), &forecast); err != nil {
		return nil, err
	}
	_, took, err := w.call("run", "--auto-decide", "all,topics=reject", "--slots", fmt.Sprint(runSlots))
	if err != nil {
		return nil, err
	}
	if lost, err := large.Lost(w.root); err != nil || len(lost) > 0 {
		return nil, fmt.Errorf("%d changes are not in the tree: %w", len(lost), err)
	}
	return []row{row{
		What: fmt.Sprintf("A run of %d controllers, agents of %s, %d slots, to what simulate predicts", runControllers, runPause, runSlots),
		Ours: took.Round(100 * time.Millisecond).String(), Peer: fmt.Sprintf("%.1fs", forecast.Prediction.Finish),
		How: "The whole command with scripted agents in workspaces and a sandbox, contended files, tests and landing; simulate knows the agents' time and a tenth of a second for the tests of a batch.",
	}.atMost(took.Seconds()/forecast.Prediction.Finish, 1.1, "%.2f×")}, nil
}

// pipelineCall measures what the program adds to one call of an agent.
func pipelineCall(ctx context.Context, b *bench) ([]row, error) {
	w, err := newWorks(ctx, b, "solo")
	if err != nil {
		return nil, err
	}
	var tasks strings.Builder
	tasks.WriteString("tasks:\n")
	for i := range soloTasks {
		fmt.Fprintf(&tasks, "  - {name: t%d, prompt: Do it., writes: [file%d.rb]}\n", i, i)
	}
	script := "calls:\n- match: '^# task \\S*t(\\d+)'\n  steps: [{write: {path: 'file$1.rb', content: \"$1\\n\"}}]\n  result: {structured: {summary: done}}\n" +
		"- match: '^# verify '\n  result: {structured: {verdict: pass, report: fine, issues: []}}\n"
	if err := errors.Join(os.MkdirAll(w.root, 0o700), os.WriteFile(filepath.Join(w.root, "tasks.yaml"), []byte(tasks.String()), 0o600), w.prepare([]byte(script), "")); err != nil {
		return nil, err
	}
	var each, bare []float64
	for round := range b.rounds {
		if err := os.WriteFile(filepath.Join(w.root, "lib.rb"), []byte(fmt.Sprint(round)), 0o600); err != nil {
			return nil, err
		}
		_, took, err := w.call("run", "--plan", "tasks.yaml", "--slots", "1", "--new")
		if err != nil {
			return nil, err
		}
		_, idle, err := w.call("run", "--plan", "tasks.yaml", "--slots", "1", "--new") // nothing is left to do
		if err != nil {
			return nil, err
		}
		each = append(each, float64(took-idle)/(2*soloTasks))
		for range soloTasks {
			cmd := exec.CommandContext(ctx, w.agent, "-p", "--output-format=stream-json", "--verbose", "--dangerously-skip-permissions")
			cmd.Dir, cmd.Env, cmd.Stdin = w.dir, w.env, strings.NewReader("# verify x")
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("the agent alone: %w: %s", err, out)
			}
			bare = append(bare, float64(time.Since(began)))
		}
		if err := w.undo(); err != nil {
			return nil, err
		}
	}
	over := median(each) - median(bare)
	return []row{row{
		What: "What a run adds to one call of an agent", Ours: ns(median(each)), Peer: ns(median(bare)) + " (the agent alone)",
		How: fmt.Sprintf("%d tasks one after the other, each with a call to apply and one to verify, with workspaces, sandbox, documents and landing.", soloTasks),
	}.atMost(over/1e6, 50, "%.0f ms")}, nil
}
