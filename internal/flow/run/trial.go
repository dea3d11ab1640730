package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/agent/toolcache"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow/failure"
	"lockkeeper/sched"
)

// A Trial is the result of the test commands on the unchanged tree, in the sandbox of a run.
type Trial struct {
	Commands []string `json:"commands"`
	Passed   bool     `json:"passed"`
	Seconds  float64  `json:"seconds"`
	Failed   string   `json:"failed,omitempty"`    // the command that failed
	Exit     int      `json:"exit,omitempty"`      // its exit status
	TooLong  bool     `json:"timed_out,omitempty"` // it was stopped at the time limit
	Last     []string `json:"last,omitempty"`      // the last lines of its output
	Sandbox  string   `json:"sandbox,omitempty"`   // what the sandbox refused to it; empty: nothing is known
	Skipped  string   `json:"skipped,omitempty"`   // why no command ran
	ReadOnly []string `json:"read_only,omitempty"` // caches of tools that commands cannot write in the sandbox
	Kept     int64    `json:"kept,omitempty"`      // the bytes of tool caches that later tests find
	NotKept  string   `json:"not_kept,omitempty"`  // why the caches of this trial were discarded
	Next     string   `json:"next,omitempty"`
}

// String says how the commands ended, in one line.
func (t *Trial) String() string {
	took := spanOf(t.Seconds)
	switch {
	case t.Skipped != "":
		return "not run: " + t.Skipped
	case t.Passed:
		return "pass here in " + took + ", on the unchanged tree"
	case t.TooLong:
		return fmt.Sprintf("stopped after %s, the time limit, on the unchanged tree: %q had not ended", took, t.Failed)
	case t.Sandbox != "":
		return fmt.Sprintf("fail here after %s, probably because of the sandbox: %s", took, t.Sandbox)
	}
	return fmt.Sprintf("fail here after %s, also without a change: %q ended with exit status %d", took, t.Failed, t.Exit)
}

// cannotRun reports whether the shell did not find a program of the tests, so that they say nothing
// about any change.
func (t *Trial) cannotRun() bool { return t.Exit == 126 || t.Exit == 127 }

func spanOf(seconds float64) string {
	switch {
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 120:
		return fmt.Sprintf("%.0f s", seconds)
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// lastShown is how many lines of output a Trial has.
const lastShown = 5

// TryTests runs the test commands once in a workspace of the unchanged tree, as a batch would run
// them. The commands are those of the plan, or else of the configuration. TryTests changes nothing
// and calls no agent. It returns nil if no test command is configured. If busy says why the commands
// cannot run now, none runs.
func (p *Pipeline) TryTests(ctx context.Context, busy string, began func(commands []string)) (*Trial, error) {
	commands, skipped := p.commonTests()
	if len(commands) == 0 {
		if skipped == "" {
			return nil, nil
		}
		return &Trial{Skipped: skipped, Next: "set run.suite_command in lockkeeper.yaml"}, nil
	}
	if busy != "" {
		return &Trial{Skipped: busy}, nil
	}
	began(commands)
	result, _, err := p.try(ctx, commands)
	return result, errors.Join(err, p.discardBase(context.WithoutCancel(ctx)))
}

// try runs test commands in a workspace of the tree as it is, also after one fails.
func (p *Pipeline) try(ctx context.Context, commands []string) (result *Trial, failures []failure.Failure, err error) {
	t := p.newUnqueued(fmt.Sprintf("tests-%d", os.Getpid()))
	defer t.freeSlots()
	w, err := p.makeWorkspace(ctx, nil)
	if errors.Is(err, errUnrecovered) {
		return &Trial{Skipped: err.Error(), Next: "lockkeeper gate recover"}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx), false)) }()
	if err := t.Phase(ctx, "test", sched.PoolTest); err != nil {
		return nil, nil, err
	}
	number, unlock, err := p.lockFreeSlot(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	t.number = number
	at := site{w: w}
	readOnly, err := p.readOnlyCaches(ctx, t, at)
	if err != nil {
		return nil, nil, err
	}
	if p.opt.Caches != nil {
		if at.fills, err = p.opt.Caches.Begin(); err != nil {
			return nil, nil, err
		}
		defer func() { err = errors.Join(err, at.fills.Discard(context.WithoutCancel(ctx))) }()
	}
	result = &Trial{Commands: commands, ReadOnly: readOnly}
	if failures, err = p.tryAll(ctx, t, at, result); err != nil || at.fills == nil || result.TooLong {
		return result, failures, err
	}
	// The tree is what people have, so its tests may fill caches for the tests of batches.
	if _, err = at.fills.Keep(ctx); errors.Is(err, toolcache.ErrLarge) {
		result.NotKept, err = err.Error(), nil
	}
	if err == nil {
		result.Kept, err = p.opt.Caches.Size()
	}
	return result, failures, err
}

// holdsSlot begins a command of a trial, which holds its slot for all its commands.
func holdsSlot() (done func() error, err error) { return func() error { return nil }, nil }

// tryAll runs the commands of a trial, also after one fails.
func (p *Pipeline) tryAll(ctx context.Context, t execution, at site, result *Trial) (failures []failure.Failure, err error) {
	for i, command := range result.Commands {
		name := filepath.Join(at.w.Home(), fmt.Sprintf("output-%d", i))
		out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		ran, err := p.execute(ctx, t, at, command, p.opt.Limits.CheckTimeout, out, holdsSlot)
		if err = errors.Join(err, out.Close()); err != nil {
			return nil, err
		}
		result.Seconds += ran.took.Seconds()
		if ran.exit == 0 {
			continue
		}
		said, err := tailOf(name, maxCompared)
		if err != nil {
			return nil, err
		}
		said = fromWorkspace(said, at.w)
		failures = append(failures, failure.Of(command, ran.exit, ran.tooLong, said, at.w.Dir(), at.w.Home()))
		if result.Failed == "" {
			p.explain(result, at.w, command, ran, said)
		}
	}
	result.Passed = result.Failed == ""
	return failures, nil
}

// explain describes the first command that failed.
func (p *Pipeline) explain(t *Trial, w *workspace.Workspace, command string, ran executed, said string) {
	t.Failed, t.Exit, t.TooLong, t.Last = command, ran.exit, ran.tooLong, lastLines(said, lastShown)
	t.Next = "make the command pass, or correct it: a batch whose tests fail in the same way is not fixed"
	if ran.tooLong {
		t.Next = "make the tests faster, or raise run.check_timeout in lockkeeper.yaml"
	} else if found := p.refusals(said, w, command); len(found) > 0 {
		t.Sandbox, t.Next = found[0].fact, found[0].next
	}
}

// commonTests returns the test commands that do not depend on a batch. If there are none although
// tests are configured, it says why.
func (p *Pipeline) commonTests() (commands []string, skipped string) {
	if p.opt.Tasks != nil && len(p.opt.Tasks.Tests) > 0 {
		return slices.Clone(p.opt.Tasks.Tests), ""
	}
	c := p.opt.Checks
	switch {
	case c.Test != "" && !strings.Contains(c.Test, "{path}") && !strings.Contains(c.Test, "{controller}"):
		return []string{c.Test}, ""
	case c.Suite != "":
		return []string{c.Suite}, ""
	case c.Test != "":
		return nil, "run.test_command tests one file, and run.suite_command is not set"
	}
	return nil, ""
}

// escapes matches the sequences with which programs color their output.
var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// lastLines returns the last n lines of a text that are not empty, without colors.
func lastLines(text string, n int) (lines []string) {
	for line := range strings.Lines(escapes.ReplaceAllString(text, "")) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
	}
	return lines[max(0, len(lines)-n):]
}
