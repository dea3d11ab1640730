package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper/durable"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/failure"
)

// A Baseline is the result of the test commands on the tree with which a run started. Later
// landings do not change it.
type Baseline struct {
	Tests    Trial             `json:"tests"`
	Failures []failure.Failure `json:"failures,omitempty"` // how each failed command failed
	Run      string            `json:"run,omitempty"`      // the run that started with it; empty: none
	Key      string            `json:"key"`                // hash of the tree, the commands and the sandbox
	At       time.Time         `json:"at"`
	Accepted bool              `json:"accepted,omitempty"` // the run goes on although the tests fail
	Stopped  bool              `json:"stopped,omitempty"`  // the run stopped because the tests fail
}

// What a run does if the tests fail on the tree with which it starts.
const (
	BaselineAsk  = "ask"      // ask the person at the terminal; without one, go on
	BaselineGoOn = "continue" // say so, and go on
	BaselineStop = "stop"     // stop before the first batch
	BaselineOff  = "off"      // do not run the tests
)

// ReadBaseline reads the result that the last run or trial stored. It returns nil if there is none.
func ReadBaseline(file string) (*Baseline, error) {
	if file == "" {
		return nil, nil
	}
	b, err := durable.ReadJSON[Baseline](file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &b, err
}

func (p *Pipeline) putBaseline(ctx context.Context, b *Baseline) error {
	if p.opt.BaselineFile == "" {
		return nil
	}
	return durable.WriteJSON(context.WithoutCancel(ctx), p.opt.BaselineFile, b, 0o600)
}

// A baselineTask takes the baseline of a run once, before its first batch starts.
type baselineTask struct {
	start func()        // starts the task; later calls do nothing; nil: the pipeline conducts no run
	done  chan struct{} // closed when the result is known

	mu     sync.Mutex
	result *Baseline // nil: unknown, so no failure is excused
}

// prepareBaseline lets the first batch that is due start the tests.
func (p *Pipeline) prepareBaseline(ctx context.Context) {
	p.baseline.done = make(chan struct{})
	p.baseline.start = sync.OnceFunc(func() {
		if p.opt.Baseline == BaselineOff {
			close(p.baseline.done)
			return
		}
		p.taking.Store(true)
		p.goroutines.Go(func() {
			defer p.mark()
			defer p.taking.Store(false)
			defer p.mark(p.units...) // before the run could seem idle
			defer close(p.baseline.done)
			if err := p.takeBaseline(ctx); err != nil && ctx.Err() == nil {
				p.tell(News{Kind: NewsWarning, Text: "cannot run the tests before the first batch: " + err.Error()})
			}
		})
	})
}

// hasBaseline reports whether batches may start. If not, they can once every unit is marked.
func (p *Pipeline) hasBaseline() bool {
	if p.baseline.start == nil {
		return true
	}
	p.baseline.start()
	select {
	case <-p.baseline.done:
		return true
	default:
		return false
	}
}

// awaitBaseline lets a batch that an earlier process queued wait.
func (p *Pipeline) awaitBaseline(ctx context.Context) error {
	p.baseline.start()
	select {
	case <-p.baseline.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.halted.Load() {
		return &pausedError{errors.New("the run is stopping")}
	}
	return nil
}

// Baseline returns the baseline of the run, or nil if it is not known.
func (p *Pipeline) Baseline() *Baseline {
	p.baseline.mu.Lock()
	defer p.baseline.mu.Unlock()
	return p.baseline.result
}

// isAsBefore reports whether a failure was there before the run. What a task demands with tests of
// its own must pass, also if it failed before.
func (l *batchRun) isAsBefore(f failure.Failure) bool {
	b := l.p.Baseline()
	return b != nil && (len(l.batch.Tests) == 0 || slices.Contains(b.Tests.Commands, f.Command)) && f.IsIn(b.Failures)
}

// takeBaseline runs the tests on the tree with which the run starts, unless the result is known, and
// decides whether the run goes on.
func (p *Pipeline) takeBaseline(ctx context.Context) error {
	commands, skipped := p.commonTests()
	if len(commands) == 0 || !p.usesTests(commands) {
		if skipped != "" {
			p.tell(News{Kind: NewsRun, Text: "the tests do not run before the first batch: " + skipped})
		}
		return nil
	}
	stored, err := ReadBaseline(p.opt.BaselineFile)
	if err != nil {
		p.tell(News{Kind: NewsWarning, Text: "cannot read the result of the tests before the run, so they run again: " + err.Error()})
		stored = nil
	}
	key, err := p.baselineKey(ctx, commands)
	if err != nil {
		return err
	}
	b, known := stored, p.knows(stored, commands, key)
	if !known {
		p.tell(News{Kind: NewsRun, Text: "running the tests on the unchanged tree before the first batch: " + strings.Join(commands, "; ")})
		tests, failures, err := p.try(ctx, commands)
		if err != nil {
			return err
		}
		b = &Baseline{Tests: *tests, Failures: failures, Key: key, At: time.Now().UTC()}
		if p.isResumed(stored, commands) && !b.Tests.Passed { // the run began with other failures, and landings of its own may have added some
			b.Failures, b.Accepted, b.Run = stored.Failures, stored.Accepted, stored.Run
		}
	}
	if b.Run != p.opt.Run {
		b.Run, b.Accepted = p.opt.Run, false
	}
	b.Stopped = false
	p.baseline.mu.Lock()
	p.baseline.result = b
	p.baseline.mu.Unlock()
	switch {
	case b.Tests.Skipped != "":
		p.tell(News{Kind: NewsRun, Text: "the tests do not run before the first batch: " + b.Tests.Skipped})
		return nil
	case b.Tests.Passed && known:
		p.tell(News{Kind: NewsRun, Text: "the tests passed before the run, on the unchanged tree"})
	case b.Tests.Passed:
		p.tell(News{Kind: NewsRun, Text: "the tests " + b.Tests.String()})
	default:
		if err := p.goOnFailing(ctx, b); err != nil {
			return err
		}
	}
	return p.putBaseline(ctx, b)
}

// isResumed reports whether a stored result is that of the run and of its commands.
func (p *Pipeline) isResumed(stored *Baseline, commands []string) bool {
	return stored != nil && stored.Run != "" && stored.Run == p.opt.Run && slices.Equal(stored.Tests.Commands, commands)
}

// knows reports whether the tests need not run again. Who stopped the run has made repairs, perhaps
// outside of the tree, so then they run again.
func (p *Pipeline) knows(stored *Baseline, commands []string, key string) bool {
	return stored != nil && stored.Key == key && !stored.Stopped || p.isResumed(stored, commands) && stored.Tests.Passed
}

// usesTests reports whether a batch of the run may run one of the commands. Each task can have its own.
func (p *Pipeline) usesTests(commands []string) bool {
	return p.opt.Tasks == nil || slices.ContainsFunc(p.opt.Tasks.Batches("", time.Time{}).Batches, func(b flow.Batch) bool {
		return len(b.Tests) == 0 || slices.ContainsFunc(b.Tests, func(test string) bool { return slices.Contains(commands, test) })
	})
}

// goOnFailing says that the tests fail on the unchanged tree, and decides whether the run goes on.
func (p *Pipeline) goOnFailing(ctx context.Context, b *Baseline) error {
	p.tell(News{Kind: NewsBaseline, Text: "the tests " + b.Tests.String() + ": " + b.What()})
	for _, line := range b.Tests.Last {
		p.tell(News{Kind: NewsBaseline, Text: "| " + line})
	}
	goOn := p.opt.Baseline != BaselineStop
	if goOn && p.opt.Baseline != BaselineGoOn && !b.Accepted {
		if p.opt.AskBaseline == nil {
			goOn = !b.Tests.cannotRun()
		} else {
			var err error
			if goOn, err = p.opt.AskBaseline(ctx, b); err != nil {
				return err
			}
		}
	}
	p.baseline.mu.Lock()
	b.Accepted, b.Stopped = goOn, !goOn
	p.baseline.mu.Unlock()
	if !goOn {
		p.halt("stopping: the tests fail on the unchanged tree, so no batch starts")
		return nil
	}
	p.tell(News{Kind: NewsBaseline, Text: "the run goes on; a batch whose tests fail in the same way is not fixed, and is reported as failing as before the run"})
	return nil
}

// What names the tests that failed, or else the ends of the outputs, in one line.
func (b *Baseline) What() string {
	var parts []string
	for _, f := range b.Failures {
		if f.Last != "" && !f.TimedOut {
			parts = append(parts, f.Last)
		} else {
			parts = append(parts, f.Parts()...)
		}
	}
	return failure.Title(parts)
}

// baselineKey identifies the tree, the test commands and the sandbox.
func (p *Pipeline) baselineKey(ctx context.Context, commands []string) (string, error) {
	tree, err := p.treeSum(ctx)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s", tree, p.opt.Sandbox, strings.Join(commands, "\x00"))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// treeSum returns a hash of the names, modes, sizes and modification times of all files that a
// workspace has. As for git and make, a file with the same size and time is the same: reading every
// file would take longer than many tests.
func (p *Pipeline) treeSum(ctx context.Context) (string, error) {
	root := p.opt.Root.Dir()
	left := append([]string{".git", ".lockkeeper"}, p.opt.Own...)
	h := sha256.New()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // it disappeared, or no workspace has it
			return nil
		case err != nil:
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(left, filepath.ToSlash(rel)) || d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		target := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if target, err = os.Readlink(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		_, err = fmt.Fprintf(h, "%s\x00%s\x00%d\x00%d\x00%s\n", rel, info.Mode(), info.Size(), info.ModTime().UnixNano(), target)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
