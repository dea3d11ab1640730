package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/process"
)

func (p *program) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "A walk through the locks in a temporary directory",
		Long: `Walk through the locks in a temporary directory: holders side by side, a
conflict, a wait that is served, a crashed holder whose locks and processes are
gone at once, and the record of it all. Every line is a real command with its
real output. It needs no set-up and leaves nothing behind.`,
		Example: `  lockkeeper demo`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.json {
				return usage(cmd, "shows people what happens, and has no answer for programs; leave --json out")
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			err := p.demo(ctx)
			var by *interruptedError
			if errors.As(context.Cause(ctx), &by) { // whoever did it knows
				return killedBy(by.signal, nil)
			}
			return err
		},
	}
}

// walk is a demonstration under way: commands of this very program, in a
// directory and with a state directory of its own.
type walk struct {
	*program
	self, dir string
	env       []string
	paint     func(colour, text string) string
}

func (p *program) demo(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lockkeeper-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := &walk{program: p, self: self, dir: filepath.Join(dir, "shop"), paint: p.painter(p.Out)}
	for _, name := range []string{"shop/app/models", "shop/docs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"app/models/user.rb", "app/models/order.rb", "app/models/cart.rb", "docs/guide.md"} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte("# "+name+"\n"), 0o644); err != nil {
			return err
		}
	}
	w.env = slices.DeleteFunc(slices.Clone(p.Env), func(entry string) bool {
		return strings.HasPrefix(entry, "LOCKKEEPER_") || strings.HasPrefix(entry, process.GrantVariable+"=")
	})
	w.env = append(w.env, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	start := time.Now()
	for _, act := range []func(context.Context) error{w.sideBySide, w.conflict, w.crash, w.record} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	w.title(fmt.Sprintf("That was real, in %s. %s is removed again.", span(time.Since(start)), dir))
	p.advise("lockkeeper init, in the root of your codebase")
	return nil
}

func (w *walk) title(text string) { fmt.Fprintf(w.Out, "\n%s\n", w.paint(bold, text)) }

func (w *walk) sideBySide(ctx context.Context) error {
	w.title("1. A codebase becomes lockable.")
	if err := w.run(ctx, exitOK, "init"); err != nil {
		return err
	}
	w.title("2. Two holders work side by side: their files do not meet, and readers share.")
	if err := w.run(ctx, exitOK, "lock", "acquire", "--holder", "otter", "--write", "app/models/user.rb", "--read", "docs/"); err != nil {
		return err
	}
	if err := w.run(ctx, exitOK, "lock", "acquire", "--holder", "heron", "--write", "app/models/order.rb", "--read", "docs/"); err != nil {
		return err
	}
	return w.run(ctx, exitOK, "status")
}

func (w *walk) conflict(ctx context.Context) error {
	w.title("3. A third one wants a file of otter's. It gets nothing, and is told who and why.")
	args := []string{"lock", "acquire", "--holder", "fox", "--write", "app/models/user.rb"}
	if err := w.run(ctx, exitBlocked, args...); err != nil {
		return err
	}
	w.title("4. It stands in line. When otter releases, the file is handed over.")
	waiter := w.command(ctx, append(args, "--wait", "30s")...)
	var answer bytes.Buffer
	waiter.Stdout, waiter.Stderr = &answer, &answer
	w.prompt(waiter, " &")
	if err := waiter.Start(); err != nil {
		return err
	}
	var failed error
	var served time.Time
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = waiter.Wait()
		served = time.Now()
	}()
	grant, err := w.inLine(ctx, ended)
	if err == nil {
		err = w.run(ctx, exitOK, "why", "app/models/user.rb")
	}
	began := time.Now()
	if err == nil {
		err = w.run(ctx, exitOK, "lock", "release", grant)
	}
	if err != nil {
		waiter.Process.Kill()
	}
	<-ended
	if failed != nil {
		failed = fmt.Errorf("the waiting command failed: %w: %s", failed, answer.String())
	}
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	w.Out.Write(answer.Bytes())
	fmt.Fprintf(w.Out, "fox has it %s after the release was typed, the start and end of both programs included\n", span(served.Sub(began)))
	return nil
}

// inLine returns otter's grant once fox waits for it.
func (w *walk) inLine(ctx context.Context, ended <-chan struct{}) (grant string, err error) {
	const limit = 20 * time.Second
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("fox did not stand in line within %s", limit))
	defer stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		out, err := w.command(ctx, "why", "fox", "--json").Output()
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("why fox: %w: %s", err, out)
		}
		var answer reasons
		if err := json.Unmarshal(out, &answer); err != nil {
			return "", err
		}
		if len(answer.Waiting) > 0 && len(answer.Waiting[0].Conflicts) > 0 {
			return answer.Waiting[0].Conflicts[0].GrantID, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-ended:
			return "", errors.New("fox left the line")
		}
	}
}

func (w *walk) crash(ctx context.Context) error {
	w.title("5. A holder crashes: kill -9, with a child of its own still running.")
	holder := w.command(ctx, "lock", "exec", "--holder", "badger", "--write", "app/models/cart.rb", "--",
		"sh", "-c", "sleep 60 & echo $!; wait")
	w.prompt(holder, " &")
	out, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return err
	}
	var child int
	_, err = fmt.Fscan(bufio.NewReader(out), &child)
	var sleeper lockkeeper.Process
	if err == nil {
		sleeper, err = process.Identify(child)
	}
	if err == nil {
		fmt.Fprintf(w.Out, "badger's sleep runs as pid %d, under lockkeeper as pid %d\n%s\n", child, holder.Process.Pid,
			w.paint(bold, fmt.Sprintf("$ kill -9 %d", holder.Process.Pid)))
	}
	holder.Process.Kill()
	holder.Wait()
	if err != nil {
		return fmt.Errorf("the holder to be killed did not start: %w", err)
	}
	began := time.Now()
	if err := w.run(ctx, exitOK, "lock", "acquire", "--holder", "fox", "--write", "app/models/cart.rb"); err != nil {
		return err
	}
	took := time.Since(began)
	host, err := process.NewHost()
	if err != nil {
		return err
	}
	if life := host.Life(sleeper); life != lockkeeper.LifeDead {
		return fmt.Errorf("the child of the killed holder, pid %d, is %s", child, life)
	}
	fmt.Fprintf(w.Out, "fox has the file after %s, and pid %d is gone: nothing writes there any more\n", span(took), child)
	return nil
}

func (w *walk) record(ctx context.Context) error {
	w.title("6. All of it is on record.")
	return w.run(ctx, exitOK, "audit")
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

func (w *walk) prompt(cmd *exec.Cmd, tail string) {
	fmt.Fprintln(w.Out, w.paint(bold, "$ "+typed(cmd.Args)+tail))
}

// run shows a command and what it answers, and checks how it ended.
func (w *walk) run(ctx context.Context, want int, args ...string) error {
	cmd := w.command(ctx, args...)
	w.prompt(cmd, "")
	if w.Out.err != nil { // nobody looks any more
		return w.Out.err
	}
	out, err := cmd.CombinedOutput()
	w.Out.Write(out)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		return fmt.Errorf("lockkeeper %s ended with %d instead of %d", strings.Join(args, " "), code, want)
	}
	if want != exitOK {
		fmt.Fprintln(w.Out, w.paint(dim, fmt.Sprintf("(exit code %d)", want)))
	}
	return nil
}
