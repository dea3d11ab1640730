package agents

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/lsp"
)

func (p *program) lspCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Show the locks of open files in an editor",
		Long: `Show the locks of open files in an editor that speaks the Language Server Protocol, over
standard input and output. It runs beside the servers of programming languages.

An open file that others hold has a diagnostic with the holder. The first edit of such a
file warns, and a message says when the file is free. Code actions claim the file, release it,
ask the holder, and show why it is held. The server never changes a file.

Editors start this command: see docs/editors.md.`,
		Example: `  lockkeeper lsp    # as the command of a language server in the settings of the editor`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if term.IsTerminal(p.In) {
				return &lockkeeper.InputError{Field: "standard input", Reason: "a terminal, but an editor starts this command", Next: "add it to the settings of your editor: see docs/editors.md"}
			}
			ctx, stop := command.Interruptible(cmd.Context())
			defer stop()
			return p.serveEditor(ctx)
		},
	}
}

func (p *program) serveEditor(ctx context.Context) error {
	agent, _ := p.Agent()
	by, err := author.InstanceOf(p.Env, agent, "", p.Person())
	if err != nil {
		return err
	}
	in, err := interruptible(p.In)
	if err != nil {
		return err
	}
	err = lsp.New(lsp.Options{
		Open: func(ctx context.Context, root string) (*project.Project, error) {
			s := p.Settings()
			s.Dir, s.SkipRecovery = root, true // recovery writes into the tree
			return project.Open(ctx, s)
		},
		Env: p.Env, Lookup: p.Lookup, Claimant: by, Person: p.asker(agent), Version: project.Version(), Now: p.Now,
	}).Serve(ctx, in, p.IO.Out)
	if errors.Is(err, lsp.ErrNoShutdown) { // the protocol wants this exit code, and no editor shows a message
		return &command.ExitError{Code: command.ExitFailed}
	}
	return err
}

// asker returns who asks holders for files: the person at the editor, who needs no terminal, or
// the agent that started it.
func (p *program) asker(agent string) lockkeeper.Actor {
	if agent != "" {
		return lockkeeper.Actor{Name: agent, Kind: lockkeeper.ActorAgent}
	}
	return p.Person()
}

// interruptible returns standard input so that Close ends a read of it. The read end of a pipe or
// socket belongs to this process alone, so no other program notices.
func interruptible(in *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), in.Name()), nil
}
