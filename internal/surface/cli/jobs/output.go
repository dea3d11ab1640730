package jobs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) jobOutputCommand() *cobra.Command {
	var attempt, call int
	var prompt, answer, follow bool
	cmd := &cobra.Command{
		Use:   "output ITEM",
		Short: "Print the output of an item's command",
		Long: `Print the standard output and standard error of an item's command: of its last attempt,
or of an earlier one that is still kept. Of long output only the end is kept. For an item
of a flow (see lockkeeper run), print what its last agent or check did. --follow prints
more as it comes, until the item ends. It waits if the item has not started. --prompt
prints the exact prompt of the agent's last call, and --answer everything that the agent
printed. --call selects an earlier call of the item.`,
		Example: `  lockkeeper job output j12
  lockkeeper job output -f j12
  lockkeeper job output blog/posts --prompt
  lockkeeper job output blog/posts --answer --call 1
  lockkeeper job output j12 --attempt 1`,
		Args: command.Exactly(1, "one item"),
		RunE: p.OnQueue(func(cmd *cobra.Command, a *project.Project, q *job.Queue, args []string) error {
			it, err := item(cmd.Context(), q, args[0])
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("attempt") {
				attempt = it.Attempts
			} else if attempt < 1 {
				return &lockkeeper.InputError{Field: "attempt", Value: fmt.Sprint(attempt), Reason: "attempts start at 1", Next: "omit --attempt for the last one"}
			}
			if cmd.Flags().Changed("call") && call < 1 {
				return &lockkeeper.InputError{Field: "call", Value: fmt.Sprint(call), Reason: "calls start at 1", Next: "omit --call for the last one"}
			}
			switch {
			case prompt:
				return p.showCall(a, it, call, func(e run.CallRecord) (string, error) { return e.Files().Prompt(), nil })
			case answer:
				return p.showCall(a, it, call, func(e run.CallRecord) (string, error) { return e.Files().Output, nil })
			case follow:
				return p.followOutput(cmd.Context(), a, q, it, attempt)
			case call > 0:
				return p.showCall(a, it, call, func(e run.CallRecord) (string, error) {
					path, _, err := e.Said()
					return path, err
				})
			}
			return p.showOutput(a, it, attempt)
		}),
	}
	cmd.Flags().IntVar(&attempt, "attempt", 0, "the `attempt` (default: the last)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print output as it comes, until the item ends")
	cmd.Flags().BoolVar(&prompt, "prompt", false, "print the prompt of a call of the item's agent")
	cmd.Flags().BoolVar(&answer, "answer", false, "print all output of a call of the item's agent")
	cmd.Flags().IntVar(&call, "call", 0, "the `call` of the item's agent, from 1 (default: the last)")
	cmd.MarkFlagsMutuallyExclusive("prompt", "answer", "attempt")
	cmd.MarkFlagsMutuallyExclusive("prompt", "answer", "follow")
	cmd.MarkFlagsMutuallyExclusive("call", "follow")
	cmd.MarkFlagsMutuallyExclusive("call", "attempt")
	return cmd
}

// showCall prints a file of a call of an item's agent; 0: of the last call.
func (p *program) showCall(a *project.Project, it *lockkeeper.Item, number int, file func(run.CallRecord) (string, error)) error {
	e, number, err := conduct.AgentCall(a, conduct.Journal(a), it, number)
	if err != nil {
		return err
	}
	path, err := file(e)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return &lockkeeper.InputError{Field: "call", Value: fmt.Sprint(number), Reason: "nothing of this is stored", Next: "lockkeeper job output " + it.ID}
	}
	if err != nil {
		return err
	}
	return p.showFile(it, 0, f)
}

func (p *program) showOutput(a *project.Project, it *lockkeeper.Item, attempt int) (err error) {
	f, err := openLast(a, it, attempt)
	if err != nil {
		return err
	}
	return p.showFile(it, attempt, f)
}

// openLast opens the output of an attempt, or for an item of a flow that of the last agent or check.
func openLast(a *project.Project, it *lockkeeper.Item, attempt int) (*os.File, error) {
	if run.FlowOf(it) == "" {
		return job.Output(a, it, attempt)
	}
	path, _, err := conduct.LastOutput(conduct.Journal(a), it)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// showFile prints a file of an item and closes it.
func (p *program) showFile(it *lockkeeper.Item, attempt int, f *os.File) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	if !p.JSON && !term.IsTerminal(p.Out) {
		_, err = io.Copy(p.Out, f)
		return err
	}
	text, err := io.ReadAll(f)
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.PrintJSON(map[string]any{"id": it.ID, "attempt": attempt, "output": string(text)})
	}
	_, err = fmt.Fprint(p.Out, p.Legible(string(text)))
	return err
}
