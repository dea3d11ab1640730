package main

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper/internal/agent/scriptedapi"
)

// stepsPerSession is the number of tool calls of one session.
const stepsPerSession = 20

// hookClaude measures what our hooks add to each tool call of the real Claude Code: the time from one
// request to the model to the next, in sessions with and without hooks.
func hookClaude(b *bench) []row {
	program := os.Getenv("LOCKKEEPER_TEST_CLAUDE")
	if program == "" {
		check(skipped("LOCKKEEPER_TEST_CLAUDE names no program; scripts/agents run -- installs one and names it"))
	}
	s := newSessions(b, program)
	var rows []row
	for _, m := range []struct {
		what  string
		steps func(file string) []scriptedapi.Tool
		limit float64 // limit in milliseconds
	}{
		{"Read", reads, 30},
		{"Edit", edits, 60},
	} {
		hooked, plain, added := []float64{}, []float64{}, []float64{}
		for range b.rounds {
			with, without := s.play(b, true, m.steps), s.play(b, false, m.steps)
			hooked, plain, added = append(hooked, with), append(plain, without), append(added, with-without)
		}
		rows = append(rows, row{What: "Hook: added to each " + m.what + " of the real Claude Code", Ours: ns(median(hooked)), Peer: ns(median(plain)) + " (no hooks)",
			How: fmt.Sprintf("The median time between requests to a scripted model in a session with %d calls. The peer is a session without hooks.", stepsPerSession)}.
			atMost(median(added)/1e6, m.limit, "%.1f ms"))
	}
	return rows
}

func reads(file string) (list []scriptedapi.Tool) {
	for i := range stepsPerSession {
		list = append(list, scriptedapi.Read(strings.Replace(file, "0", fmt.Sprint(i), 1)))
	}
	return list
}

func edits(file string) []scriptedapi.Tool {
	list := []scriptedapi.Tool{scriptedapi.Read(file)}
	for i := range stepsPerSession {
		list = append(list, scriptedapi.Edit(file, fmt.Sprintf("state %d.", i), fmt.Sprintf("state %d.", i+1)))
	}
	return list
}

// sessions plays sessions of Claude Code in two directories: a codebase whose hooks `lockkeeper init
// claude` wrote, and one without.
type sessions struct{ program, hooked, plain, home string }

func newSessions(b *bench, program string) sessions {
	dir := filepath.Join(b.dir, "claude")
	s := sessions{program, filepath.Join(dir, "hooked"), filepath.Join(dir, "plain"), filepath.Join(dir, "home")}
	bin := filepath.Join(dir, "bin")
	check(errors.Join(os.MkdirAll(bin, 0o700), os.MkdirAll(s.hooked, 0o700), os.MkdirAll(s.plain, 0o700), os.MkdirAll(filepath.Join(s.home, "plain"), 0o700), os.MkdirAll(filepath.Join(s.home, "hooked"), 0o700)))
	ours := b.build("lockkeeper", bin)
	cmd := exec.CommandContext(b.ctx, ours, "init", "claude", "--yes")
	cmd.Dir, cmd.Env = s.hooked, s.environment(true, "")
	timed(cmd)
	return s
}

func (s sessions) environment(hooked bool, url string) []string {
	home := filepath.Join(s.home, map[bool]string{true: "hooked", false: "plain"}[hooked])
	return []string{"PATH=" + filepath.Join(filepath.Dir(s.home), "bin") + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "LANG=C", "IS_SANDBOX=1", "ANTHROPIC_BASE_URL=" + url,
		"ANTHROPIC_API_KEY=not-a-real-key", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1"}
}

// play runs one session and returns the median time from one step to the next, in nanoseconds.
func (s sessions) play(b *bench, hooked bool, steps func(file string) []scriptedapi.Tool) float64 {
	dir := map[bool]string{true: s.hooked, false: s.plain}[hooked]
	for i := range stepsPerSession {
		writeFile(filepath.Join(dir, fmt.Sprintf("file_%d.txt", i)), []byte("state 0.\n"))
	}
	var script scriptedapi.Play
	for _, tool := range steps(filepath.Join(dir, "file_0.txt")) {
		script.Steps = append(script.Steps, scriptedapi.Step{Tools: []scriptedapi.Tool{tool}})
	}
	script.Steps = append(script.Steps, scriptedapi.Step{Text: "Done."})
	model := get(scriptedapi.New(dir, script))
	api := httptest.NewServer(model)
	defer api.Close()
	cmd := exec.CommandContext(b.ctx, s.program, "-p", "--output-format", "json", "--dangerously-skip-permissions", "Work")
	cmd.Dir, cmd.Env = dir, s.environment(hooked, api.URL)
	out, _ := timed(cmd)
	asked := model.Requests()
	if len(asked) != len(script.Steps) {
		check(fmt.Errorf("%d requests instead of %d: %s", len(asked), len(script.Steps), out))
	}
	var took []float64
	var before time.Time
	for i, r := range asked {
		if i > 1 { // the first two intervals also include the start of the session, and the Read that an Edit needs
			took = append(took, float64(r.At.Sub(before)))
		}
		before = r.At
	}
	return median(took)
}
