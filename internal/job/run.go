package job

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/disk"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/sched"
)

// These are environment variables of an item's command.
const (
	ItemVariable = "LOCKKEEPER_ITEM" // the id of the item
	SlotVariable = "LOCKKEEPER_SLOT" // the number of its test slot, unique among running items
)

// A Runner runs the commands of items, each under its item's grant.
type Runner struct {
	app     *project.Project
	env     []string
	outputs *outputs
	trouble func(error)
}

// NewRunner returns a runner for commands in an environment. It calls the function trouble for
// errors that do not fail an item.
func NewRunner(a *project.Project, env []string, trouble func(error)) (*Runner, error) {
	kept, err := makeOutputs(a)
	if err != nil {
		return nil, err
	}
	return &Runner{app: a, env: env, outputs: kept, trouble: trouble}, nil
}

// environment returns the environment of the command of an item, without the item and slot of
// this process.
func (r *Runner) environment(it *lockkeeper.Item) []string {
	env := slices.DeleteFunc(slices.Clone(r.env), func(entry string) bool {
		return strings.HasPrefix(entry, ItemVariable+"=") || strings.HasPrefix(entry, SlotVariable+"=")
	})
	env = append(env, ItemVariable+"="+it.ID)
	if it.Slot != 0 {
		env = append(env, fmt.Sprintf("%s=%d", SlotVariable, it.Slot))
	}
	return env
}

func (r *Runner) Close() error { return r.outputs.dir.Close() }

// OutputSep precedes the path of the output in the message of a CommandError.
const OutputSep = "; its output: "

// A CommandError reports how the command of an item failed.
type CommandError struct {
	Code   int            // exit code as shells report it
	Signal syscall.Signal // the signal that killed the command; 0: none
	Last   string         // the last line of the command's output
	Output string         // the file with the output, relative to the root
}

func (e *CommandError) Error() string {
	what := fmt.Sprintf("exit status %d", e.Code)
	if e.Signal != 0 {
		what = "killed by " + unix.SignalName(e.Signal)
	}
	if e.Last != "" {
		what += fmt.Sprintf(", last output %q", e.Last)
	}
	return what + OutputSep + e.Output
}

// Run runs the command of an item, keeps its output, and returns when all its processes have
// ended.
func (r *Runner) Run(ctx context.Context, job *sched.Job) error {
	it := &job.Item
	if len(it.Command) == 0 {
		return &lockkeeper.InputError{Field: "command", Reason: "the item has none; only the program that queued it can run it", Next: "queue it with lockkeeper job submit"}
	}
	if !filepath.IsLocal(filepath.FromSlash(it.Dir)) {
		return &lockkeeper.InputError{Field: "directory", Value: it.Dir, Reason: "not below the root", Next: "submit it from a directory of the codebase"}
	}
	rec, err := r.outputs.record(it.ID, it.Attempts)
	if err != nil {
		return err
	}
	failed := &CommandError{Output: outputDir + "/" + rec.name}
	unshare, err := r.app.ShareOperation(ctx, job.Grant)
	if err != nil {
		return errors.Join(err, rec.close())
	}
	var group lockkeeper.Process
	failed.Code, err = r.app.Host.Run(ctx, process.Command{
		Argv: it.Command, Dir: filepath.Join(r.app.Root.Dir(), filepath.FromSlash(it.Dir)),
		Env:    r.environment(it),
		Stdout: rec.in, Stderr: rec.in,
		Grant: job.Grant.ID, KillAfter: job.Grant.KillAfter(),
		Killed: func(by syscall.Signal) { failed.Signal = by },
		Started: func(self lockkeeper.Process) error {
			group = self
			return job.Grant.SetProcess(ctx, self)
		},
	})
	r.outlast(ctx, err, group, job.Grant.ID)
	if left := unshare(); left != nil {
		r.trouble(left)
	}
	if unkept := rec.close(); unkept != nil {
		r.trouble(fmt.Errorf("the output of item %s is incomplete: %w", it.ID, unkept))
	}
	switch {
	case err != nil:
		return err
	case failed.Code != 0:
		failed.Last = rec.last()
		return failed
	}
	return nil
}

// outlast waits for processes of a command that could not be killed. Until they end, the item
// must keep its locks.
func (r *Runner) outlast(ctx context.Context, err error, group lockkeeper.Process, grantID string) {
	var left *process.LeftoversError
	if !errors.As(err, &left) {
		return
	}
	r.trouble(left)
	if err := r.app.Host.EndWork(context.WithoutCancel(ctx), group, grantID); err != nil {
		r.trouble(err)
	}
}

// CheckCommand refuses a command that cannot be started in the working directory. With several
// nodes it checks nothing, because another node may have the command.
func CheckCommand(a *project.Project, name string) error {
	if a.Config.Deployment == config.MultiNode {
		return nil
	}
	path := name
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		path = filepath.Join(a.WorkDir, name)
	}
	if _, err := exec.LookPath(path); err != nil {
		var why *exec.Error
		if errors.As(err, &why) {
			err = why.Err
		}
		return &lockkeeper.InputError{Field: "command", Value: name, Reason: "cannot be run in " + a.WorkDir + ": " + disk.Reason(err), Next: "name a program in PATH, or an executable file from there"}
	}
	return nil
}
