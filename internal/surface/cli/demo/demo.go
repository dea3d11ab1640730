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
	"lockkeeper/internal/git/gitenv"
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
		Long: `Run the pipeline on a small application in a temporary directory: agents harden
four controllers at once, wait for each other where they want the same files, are
refused a file that they did not lock, and go on after a crash (kill -9). At the
end: who ran when and who waited for whom, what changed, and whether anybody wrote
over anybody, counted from the record.

It needs no account, no network and no set-up, and leaves nothing behind. Every
line after a $ is a real command with its real output. The agents are scripted:
programs that speak the protocol of claude -p and do what a script says, so nothing
is paid for. With --claude the real claude does the work instead, as far as --budget
goes, and nothing is crashed on purpose. It has its key, its login and its settings
from where it always has them, and keeps what was said there. When something fails,
the budget is used up or you stop it, what was paid for is left, with the command to
go on.

The exit code is 0 if all went as it should and nothing collided, and 7 when the
budget is used up.`,
		Example: `  lockkeeper demo
  lockkeeper demo --diff
  lockkeeper demo --keep
  lockkeeper demo --claude --budget 5
  lockkeeper demo --fast --json | jq .writes_landed`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(cmd.Context())
			defer stop()
			err := p.demo(ctx, o)
			var by *command.InterruptedError
			if errors.As(context.Cause(ctx), &by) { // whoever did it knows
				return command.KilledBy(by.Signal, nil)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.keep, "keep", false, "leave the directory, and say what is where")
	f.BoolVar(&o.context, "diff", false, "show the diff with what is around the changed lines")
	f.BoolVar(&o.fast, "fast", false, "scripted agents do not take their time")
	f.BoolVar(&o.claude, "claude", false, "let the real claude do the work, which costs money")
	f.BoolVar(&o.noUI, "no-ui", false, "do not serve the dashboard meanwhile")
	o.budget = 5
	f.Var(&o.budget, "budget", "with --claude: the `dollars` that may be spent")
	f.BoolVar(&o.yes, "yes", false, "with --claude: do not ask")
	return cmd
}

// walk is a demonstration under way: commands of this very program, in a directory and
// with a state directory of its own.
type walk struct {
	*program
	opt   demoOptions
	self  string
	base  string // all that the demonstration makes is in it
	dir   string // the application
	env   []string
	git   bool
	paint func(color, text string) string
	began time.Time

	before   photo     // of the application
	crashed  time.Time // zero: nothing did
	running  bool      // a conductor was started, and did not end by itself
	chapters int       // that were told

	paid  *report.Cost // what claude cost; nil: nothing was paid
	short error        // why claude did not come to its end

	mu sync.Mutex // held while something is shown
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
			if w.Out.Err != nil { // nobody looks any more
				return w.Out.Err
			}
		}
		return nil
	})
}

// withUI runs body with the dashboard of the application served beside it.
func (w *walk) withUI(ctx context.Context, body func() error) error {
	if w.opt.noUI || w.JSON {
		return body()
	}
	return w.inside(ctx, func(a *project.Project) error {
		own, io := *w.Program, *w.IO
		io.Env = w.env
		own.IO = &io
		b, err := server.OpenDashboard(ctx, &own, a)
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
	return []func(context.Context) error{w.crash, w.remains, w.answer, w.goOn, w.refused, w.sum}
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
		w.direct(sample.Stuck), // until the run is killed
		os.WriteFile(filepath.Join(w.base, researchName), []byte(research), 0o600),
		os.WriteFile(filepath.Join(w.dir, "lockkeeper.yaml"), []byte(w.configuration(agent, scripts)), 0o644),
		os.WriteFile(filepath.Join(w.dir, ".gitignore"), []byte(".pipeline/\n"), 0o644),
		os.Symlink(w.self, agent),
	); err != nil {
		return err
	}
	// The demonstration is thrown away. The caller's locks, the agent that called, and the hooks
	// and signatures of the caller's git do not apply to it.
	w.env = slices.DeleteFunc(gitenv.Outside(w.Env), func(entry string) bool {
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

// scriptFile is the script of the scripted agents.
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

// configuration is the lockkeeper.yaml of the application.
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
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "A small blog"}} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir, cmd.Env = w.dir, w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// leave ends what a killed conductor may have left running, and removes everything that
// nobody wants to keep.
func (w *walk) leave(ctx context.Context) (err error) {
	if w.running {
		err = w.inside(ctx, func(a *project.Project) error {
			_, err := a.Locks.Recover(ctx)
			return err
		})
		if lockkeeper.CodeOf(err) == lockkeeper.CodeInput { // there were no locks yet
			err = nil
		}
	}
	if w.opt.claude && w.running { // somebody stopped it: what was paid for is theirs
		w.opt.keep = true
		w.Advise(w.goOnWith("--budget", w.opt.budget.String()))
	}
	if w.opt.keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(w.base))
}

// inside opens the application's locks in this process, to look at them.
func (w *walk) inside(ctx context.Context, look func(*project.Project) error) error {
	io := *w.IO
	io.Env = w.env
	a, err := project.Open(ctx, project.Settings{Dir: w.dir, Env: io.Lookup})
	if err != nil {
		return err
	}
	return errors.Join(look(a), a.Close())
}

// chapter tells what happens next.
func (w *walk) chapter(title string, lines ...string) {
	w.chapters++
	w.tell(fmt.Sprintf("%d. %s", w.chapters, title), lines...)
}

// tell says what happens, in words.
func (w *walk) tell(title string, lines ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.to, "\n%s\n", w.paint(term.Bold, title))
	for _, line := range lines {
		fmt.Fprintln(w.to, line)
	}
}

// command is a call of this program as somebody would type it.
func (w *walk) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.self, args...)
	cmd.Args[0] = "lockkeeper"
	cmd.Dir, cmd.Env = w.dir, w.env
	// Asked to end, it ends what it runs.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// show shows a command and what it answers, and checks how it ended.
func (w *walk) show(ctx context.Context, cmd *exec.Cmd) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.to, w.paint(term.Bold, "$ "+shellword.Join(cmd.Args)))
	if w.Out.Err != nil { // nobody looks any more
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

// lastLines is how many lines of a run are told when it fails.
const lastLines = 5

// conduct starts a run.
func (w *walk) conduct(ctx context.Context, args ...string) (*conductor, error) {
	cmd := w.command(ctx, append(append([]string{"run"}, args...), "--no-ui")...)
	// Ctrl-C at the terminal is for the demonstration, which ends the run as hard as a
	// crash would: nothing of it is wanted any more.
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
				cmd.Process.Kill() // it may have ended
			}
		}
		if lines.Err() != nil { // nobody reads any more what it says
			cmd.Process.Kill()
		}
		c.err = errors.Join(cmd.Wait(), lines.Err(), said.Close())
	}()
	return c, nil
}

// pass shows a line that a run has said, and reports whether anybody looks.
func (w *walk) pass(line string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.to, "  "+line)
	return w.Out.Err == nil
}
