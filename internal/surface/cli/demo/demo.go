package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/agent/scripted"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/flow/sample"
	"lockkeeper/internal/git/gitcmd"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/server"
	"lockkeeper/internal/surface/cli/term"
)

type demoOptions struct {
	keep, fast, context, claude, yes, noUI bool
	budget                                 term.Dollars
}

func (p *program) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a whole run on a small application, with a crash in the middle",
		Long: `Run a flow on a small application in a temporary directory: agents harden four
controllers at once. They wait for each other if they need the same files, and are refused
a file that they did not lock. After a crash (kill -9) they resume. At the end it shows who
ran when, who waited for whom, and what changed. From the event log it counts whether
any write overwrote another.

It needs no account, no network and no setup, and leaves nothing behind. Every line after
a $ is a real command with its real output. The agents are scripted programs that speak
the protocol of claude -p, so they cost nothing. With --claude the real claude does the
work, up to --budget, and nothing is crashed on purpose. It uses its own login and
settings. If something fails, the budget is spent or you stop it, the directory is kept,
and the command to resume is printed.

The exit code is 0 if everything succeeded without a collision, and 7 if the budget is
spent.`,
		Example: `  lockkeeper demo
  lockkeeper demo --diff
  lockkeeper demo --keep
  lockkeeper demo --claude --budget 5
  lockkeeper demo --fast --json | jq .writes_landed`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(cmd.Context())
			defer stop()
			err := p.demo(ctx, o)
			if by, ok := errors.AsType[*command.InterruptedError](context.Cause(ctx)); ok { // an interruption needs no message
				return command.KilledBy(by.Signal, nil)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.keep, "keep", false, "keep the directory, and list its content")
	f.BoolVar(&o.context, "diff", false, "show the diff with context lines")
	f.BoolVar(&o.fast, "fast", false, "let scripted agents answer at once")
	f.BoolVar(&o.claude, "claude", false, "let the real claude do the work, which costs money")
	f.BoolVar(&o.noUI, "no-ui", false, "do not serve the dashboard")
	o.budget = 5
	f.Var(&o.budget, "budget", "with --claude: the `dollars` that may be spent")
	f.BoolVar(&o.yes, "yes", false, "with --claude: do not ask")
	return cmd
}

// walk is one demonstration: commands of this program, in its own directory and with its own
// state directory.
type walk struct {
	*program
	opt   demoOptions
	self  string
	base  string // directory with everything of the demonstration
	dir   string // the application
	env   []string
	git   bool
	paint func(color, text string) string
	began time.Time

	before   photo     // the application before the run
	crashed  time.Time // zero: no crash
	running  bool      // a run was started, and did not end by itself
	chapters int       // number of chapters printed so far

	paid  *report.Cost // the cost of claude; nil: none
	short error        // why claude did not finish

	mu sync.Mutex // held while printing
	to io.Writer
}

func (p *program) demo(ctx context.Context, o demoOptions) (err error) {
	if o.claude {
		if err := p.mayPay(o); err != nil {
			return err
		}
	}
	w := &walk{program: p, opt: o, paint: p.Painter(p.Out), began: p.Now(), to: p.Out}
	if p.JSON {
		w.to, w.paint = io.Discard, func(_, text string) string { return text }
	}
	if w.self, err = os.Executable(); err != nil {
		return err
	}
	if w.base, err = os.MkdirTemp("", "lockkeeper-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.leave(context.WithoutCancel(ctx))) }()
	if w.base, err = filepath.EvalSymlinks(w.base); err != nil {
		return err
	}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	return w.withUI(ctx, func() error {
		for _, step := range w.steps() {
			if err := step(ctx); err != nil {
				return err
			}
			if w.Out.Err != nil { // nobody reads the output any more
				return w.Out.Err
			}
		}
		return nil
	})
}

// withUI serves the dashboard of the application while body runs.
func (w *walk) withUI(ctx context.Context, body func() error) error {
	if w.opt.noUI || w.JSON {
		return body()
	}
	return w.inside(ctx, func(a *project.Project) error {
		own, io := *w.Program, *w.IO
		io.Env = w.env
		own.IO = &io
		b, err := server.OpenDashboard(ctx, &own, a, "demo")
		if err != nil {
			return err
		}
		return errors.Join(b.Announce(ctx), body(), b.Close())
	})
}

func (w *walk) steps() []func(context.Context) error {
	if w.opt.claude {
		return []func(context.Context) error{w.payRun, w.refused, w.sum}
	}
	return []func(context.Context) error{w.crash, w.remains, w.answer, w.resume, w.refused, w.sum}
}

// prepare makes the application, its configuration and the scripted agent.
func (w *walk) prepare(ctx context.Context) error {
	w.dir = filepath.Join(w.base, "blog")
	if err := sample.Write(w.dir); err != nil {
		return err
	}
	research, err := sample.Research()
	if err != nil {
		return err
	}
	scripts := filepath.Dir(w.scriptFile())
	if err := os.Mkdir(scripts, 0o700); err != nil {
		return err
	}
	agent := filepath.Join(w.base, scripted.Program)
	if err := errors.Join(
		w.direct(sample.Stuck), // an agent then runs until its process is killed
		os.WriteFile(filepath.Join(w.base, researchName), []byte(research), 0o600),
		os.WriteFile(filepath.Join(w.dir, "lockkeeper.yaml"), []byte(w.configuration(agent, scripts)), 0o644),
		os.WriteFile(filepath.Join(w.dir, ".gitignore"), []byte(".pipeline/\n"), 0o644),
		os.Symlink(w.self, agent),
	); err != nil {
		return err
	}
	// The locks of the caller, the agent that called, and the hooks and signatures of the
	// caller's git do not apply to the demonstration.
	w.env = slices.DeleteFunc(gitcmd.Outside(w.Env), func(entry string) bool {
		_, inAgent := process.AgentEnvironment([]string{entry})
		return inAgent || strings.HasPrefix(entry, "LOCKKEEPER_") || strings.HasPrefix(entry, process.GrantVariable+"=")
	})
	w.env = append(w.env, "XDG_STATE_HOME="+w.base, "TMPDIR="+w.base, scripted.ScriptVariable+"="+w.scriptFile(),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=Lockkeeper demo", "GIT_AUTHOR_EMAIL=demo@localhost", "GIT_COMMITTER_NAME=Lockkeeper demo", "GIT_COMMITTER_EMAIL=demo@localhost")
	if w.git {
		if err := w.makeRepository(ctx); err != nil {
			return err
		}
	}
	w.before, err = photograph(w.dir)
	return err
}

func (w *walk) scriptFile() string { return filepath.Join(w.base, "script", "script.yaml") }

// direct writes the script that agents follow from now on.
func (w *walk) direct(script func(pace float64) ([]byte, error)) error {
	pace := 1.0
	if w.opt.fast {
		pace = 0
	}
	text, err := script(pace)
	if err != nil {
		return err
	}
	return os.WriteFile(w.scriptFile(), text, 0o600)
}

// configuration returns the lockkeeper.yaml of the application.
func (w *walk) configuration(agent, scripts string) string {
	_, err := exec.LookPath("git")
	w.git = err == nil
	lines := []string{"run:", "  test_command: " + sample.Test + " {path}", "  ci: [" + sample.CI + "]"}
	if w.git {
		lines = append(lines, "  commit: on")
	}
	lines = append(lines, "max_test_concurrency: 2")
	if !w.opt.claude {
		lines = append(lines, "agent:", "  name: claude", fmt.Sprintf("  command: [%q]", agent), fmt.Sprintf("  caches: [%q]", scripts))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (w *walk) makeRepository(ctx context.Context) error {
	git := gitcmd.Command{Dir: w.dir, Env: w.env}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "A small blog"}} {
		if err := git.Run(ctx, nil, io.Discard, args...); err != nil {
			return err
		}
	}
	return nil
}

// leave stops processes that a killed run left, and removes the directory unless it is kept.
func (w *walk) leave(ctx context.Context) (err error) {
	if w.running {
		err = w.inside(ctx, func(a *project.Project) error {
			_, err := a.Locks.Recover(ctx)
			return err
		})
		if lockkeeper.CodeOf(err) == lockkeeper.CodeInput { // the directory has no space yet
			err = nil
		}
	}
	if w.opt.claude && w.running { // a person, who pays for the run, stopped it
		w.opt.keep = true
		w.Advise(w.resumeWith("--budget", w.opt.budget.String()))
	}
	if w.opt.keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(w.base))
}

// inside opens the project of the application in this process.
func (w *walk) inside(ctx context.Context, read func(*project.Project) error) error {
	io := *w.IO
	io.Env = w.env
	a, err := project.Open(ctx, project.Settings{Dir: w.dir, Env: io.Lookup})
	if err != nil {
		return err
	}
	return errors.Join(read(a), a.Close())
}

func (w *walk) chapter(title string, lines ...string) {
	w.chapters++
	w.tell(fmt.Sprintf("%d. %s", w.chapters, title), lines...)
}

func (w *walk) tell(title string, lines ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.to, "\n%s\n", w.paint(term.Bold, title))
	for _, line := range lines {
		fmt.Fprintln(w.to, line)
	}
}

// command returns a call of this program, as a person would type it.
func (w *walk) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.self, args...)
	cmd.Args[0] = "lockkeeper"
	cmd.Dir, cmd.Env = w.dir, w.env
	// On SIGTERM, the program stops its own child processes.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// show prints a command and its output, and returns an error if it fails.
func (w *walk) show(ctx context.Context, cmd *exec.Cmd) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.to, w.paint(term.Bold, "$ "+shellword.Join(cmd.Args)))
	if w.Out.Err != nil { // nobody reads the output any more
		return w.Out.Err
	}
	if !w.JSON && term.IsTerminal(w.Out) {
		cmd.Stdout, cmd.Stderr = w.Out.File, w.Out.File
	} else {
		cmd.Stdout, cmd.Stderr = w.to, w.to
	}
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s: %w", shellword.Join(cmd.Args), err)
	}
	return nil
}

// lastLines is how many lines of a failed run its error has.
const lastLines = 5

func (w *walk) conduct(ctx context.Context, args ...string) (*conductor, error) {
	cmd := w.command(ctx, append(append([]string{"run"}, args...), "--no-ui")...)
	// Ctrl-C at the terminal is for the demonstration, which then kills the run.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, into, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer into.Close()
	cmd.Stdout, cmd.Stderr = into, into
	cmd.Cancel = func() error { return cmd.Process.Kill() }
	w.mu.Lock()
	fmt.Fprintln(w.to, w.paint(term.Bold, "$ "+shellword.Join(cmd.Args)))
	w.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, said.Close())
	}
	w.running = true
	c := &conductor{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			c.last = append(c.last[max(0, len(c.last)-lastLines+1):], lines.Text())
			if !w.pass(lines.Text()) {
				cmd.Process.Kill() // the process may have ended already
			}
		}
		if lines.Err() != nil { // the output of the command is no longer read
			cmd.Process.Kill()
		}
		c.err = errors.Join(cmd.Wait(), lines.Err(), said.Close())
	}()
	return c, nil
}

// pass prints a line of a run, and reports whether there is still a reader.
func (w *walk) pass(line string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.to, "  "+line)
	return w.Out.Err == nil
}
