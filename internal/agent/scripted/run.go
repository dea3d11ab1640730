package scripted

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Process is the environment of the agent.
type Process struct {
	Args           []string // the arguments without the name of the program
	Script         string   // the script file
	Dir            string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// exitTerminated is the code of Claude Code when SIGTERM ended it.
const exitTerminated = 143

// signals lists the signals that can end an agent.
var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}

// Run runs the agent until it is done or ctx ends, and returns its exit code.
func Run(ctx context.Context, p Process) int {
	a, err := start(p)
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
		return 1
	}
	defer a.root.Close()
	if a.call.Stubborn {
		ctx = context.WithoutCancel(ctx)
	}
	code, err := a.play(ctx)
	if ctx.Err() != nil {
		return exitTerminated
	}
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
		return 1
	}
	return code
}

type agent struct {
	Process
	call *Call
	root *os.Root
	says protocol
}

func start(p Process) (*agent, error) {
	f, err := parseFlags(p.Args)
	if err != nil {
		return nil, err
	}
	if p.Script == "" {
		return nil, errors.New(ScriptVariable + " names no script")
	}
	script, err := ReadScript(p.Script)
	if err != nil {
		return nil, err
	}
	prompt, err := io.ReadAll(p.Stdin)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(prompt)) == 0 {
		return nil, errors.New("error: input must be provided either through stdin or as a prompt argument when using --print")
	}
	call, err := script.find(string(prompt))
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return nil, err
	}
	session := cmp.Or(f.resume, f.session, uuid(string(prompt)))
	return &agent{Process: p, call: call, root: root, says: protocol{out: p.Stdout, flags: f, session: session, dir: p.Dir}}, nil
}

// play runs all steps and prints the result. A step that ends the process prints none.
func (a *agent) play(ctx context.Context) (code int, err error) {
	if err := a.says.init(); err != nil {
		return 1, err
	}
	for i := range a.call.Steps {
		step := &a.call.Steps[i]
		if step.Exit != nil {
			return *step.Exit, nil
		}
		if err := a.act(ctx, step); err != nil {
			return 1, err
		}
		if most := a.says.flags.maxTurns; most > 0 && a.says.turns >= most {
			return a.end(ctx, "error_max_turns", &Result{Text: fmt.Sprintf("Reached maximum number of turns (%d)", most), CostUSD: a.call.Result.CostUSD, Tokens: a.call.Result.Tokens})
		}
	}
	r := &a.call.Result
	if most := a.says.flags.maxBudgetUSD; most > 0 && r.CostUSD > most {
		return a.end(ctx, "error_max_budget_usd", &Result{Text: fmt.Sprintf("Reached maximum budget ($%g)", most), CostUSD: r.CostUSD, Tokens: r.Tokens})
	}
	switch f := r.Fail; {
	case f != nil:
		if f.Resets != 0 {
			err = a.says.line("rate_limit_event", object{"rate_limit_info": object{"status": "rejected", "resetsAt": f.Resets}})
		}
		err = errors.Join(err, a.says.say(f.Text, f.Word))
	case r.Text != "":
		err = a.says.say(r.Text, "")
	}
	if err != nil {
		return 1, err
	}
	return a.end(ctx, "success", r)
}

func (a *agent) end(ctx context.Context, subtype string, r *Result) (int, error) {
	line, code, err := a.says.result(subtype, r)
	if err != nil {
		return 1, err
	}
	if r.Cut > 0 {
		line = line[:min(r.Cut, len(line))]
	}
	if _, err := a.Stdout.Write(line); err != nil {
		return 1, err
	}
	if r.Cut > 0 {
		return 1, die(ctx, "KILL")
	}
	return code, nil
}

func (a *agent) act(ctx context.Context, s *Step) error {
	switch {
	case s.Say != nil:
		return a.says.say(*s.Say, "")
	case s.Write != nil:
		input := object{"file_path": filepath.Join(a.Dir, s.Write.Path), "content": s.Write.Content}
		return a.says.tool("Write", input, false, func() (string, error) { return "File created successfully at: " + s.Write.Path, a.write(s.Write) })
	case s.Edit != nil:
		return a.edit(s.Edit)
	case s.Delete != nil:
		input := object{"command": "rm " + *s.Delete, "description": "delete a file"}
		return a.says.tool("Bash", input, false, func() (string, error) { return "", a.root.Remove(*s.Delete) })
	case s.Tool != nil:
		return a.says.tool(s.Tool.Name, s.Tool.Input, s.Tool.Denied, func() (string, error) { return s.Tool.Answer, nil })
	case s.Retry != nil:
		err := a.says.line("system", object{"subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": s.Retry.Wait.Milliseconds(),
			"error_status": s.Retry.Status, "error": s.Retry.Word})
		return errors.Join(err, wait(ctx, s.Retry.Wait))
	case s.Sleep != nil:
		return wait(ctx, *s.Sleep)
	case s.Await != nil:
		return await(ctx, filepath.Join(filepath.Dir(a.Script), *s.Await))
	case s.Print != nil:
		_, err := io.WriteString(a.Stdout, *s.Print)
		return err
	case s.Log != nil:
		_, err := fmt.Fprintln(a.Stderr, *s.Log)
		return err
	case s.Flood != nil:
		_, err := io.WriteString(a.Stdout, strings.Repeat("x", int(*s.Flood)))
		return err
	case s.Spawn != nil:
		return spawn(*s.Spawn)
	case s.Hang != nil && *s.Hang:
		<-ctx.Done()
		return context.Cause(ctx)
	case s.Die != nil:
		return die(ctx, *s.Die)
	}
	return nil
}

func (a *agent) write(w *Write) error {
	if err := a.root.MkdirAll(filepath.Dir(w.Path), 0o755); err != nil {
		return err
	}
	return a.root.WriteFile(w.Path, []byte(w.Content), 0o644)
}

// edit replaces a text. An edit that does not match is reported like any failed tool call. It
// then ends the play, so that the author of the script notices.
func (a *agent) edit(e *Edit) error {
	var failed error
	input := object{"file_path": filepath.Join(a.Dir, e.Path), "old_string": e.Find, "new_string": e.Replace}
	err := a.says.tool("Edit", input, false, func() (string, error) {
		text, err := a.root.ReadFile(e.Path)
		if err == nil {
			err = e.apply(&text)
		}
		if err == nil {
			err = a.root.WriteFile(e.Path, text, 0o644)
		}
		if err != nil {
			failed = fmt.Errorf("edit of %s: %w", e.Path, err)
		}
		return "The file " + e.Path + " has been updated successfully.", failed
	})
	return errors.Join(err, failed)
}

func (e *Edit) apply(text *[]byte) error {
	find, replace := []byte(e.Find), []byte(e.Replace)
	done := len(replace) > 0 && bytes.Contains(*text, replace)
	switch n := bytes.Count(*text, find); {
	case done && (n == 0 || bytes.Contains(replace, find)):
		return nil
	case n != 1:
		return fmt.Errorf("the text to replace occurs %d times, want once: %q", n, e.Find)
	}
	*text = bytes.Replace(*text, find, replace, 1)
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await reads a line from a named pipe.
func await(ctx context.Context, pipe string) error {
	f, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0) // does not wait for a writer
	if err != nil {
		return err
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err = bufio.NewReader(f).ReadString('\n')
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// die sends this process a signal and waits for it.
func die(ctx context.Context, name string) error {
	if err := syscall.Kill(os.Getpid(), signals[name]); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// spawn starts a process in its own session, like a server that an agent leaves running.
func spawn(lasts time.Duration) error {
	cmd := exec.Command("sleep", fmt.Sprint(lasts.Seconds()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// Program is the name of the executable that acts as this agent.
const Program = "lockkeeper-scripted-agent"

// Main runs the agent as its own process and returns its exit code.
func Main() int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return Run(ctx, Process{Args: os.Args[1:], Script: os.Getenv(ScriptVariable), Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
}
