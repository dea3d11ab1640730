package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/agents"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/compat"
	"lockkeeper/internal/surface/cli/demo"
	"lockkeeper/internal/surface/cli/flows"
	"lockkeeper/internal/surface/cli/inspect"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/landings"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/server"
	"lockkeeper/internal/surface/cli/term"
)

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, io *term.IO, args []string) int {
	// A reader that closes the pipe early must not end the program before its clean-up.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	p := &command.Program{IO: io, Out: &term.Output{File: io.Out}, Args: args}
	root := root(p)
	root.SetArgs(withWait(root, args))
	err := root.ExecuteContext(ctx)
	if failed := command.Unwritten(p.Out); failed != nil {
		err = failed
	}
	p.Report(err)
	command.Die(err)
	return command.ExitCode(err)
}

// withWait gives --wait the default time if no time follows it. The flag of run has no time.
func withWait(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil {
		return args
	}
	if f := cmd.Flags().Lookup("wait"); f == nil || f.Value.Type() != new(term.Duration).Type() {
		return args
	}
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "--wait" && (i+1 == len(args) || isFlag(args[i+1])) {
			return slices.Insert(slices.Clone(args), i+1, lockkeeper.DefaultWait.String())
		}
	}
	return args
}

// isFlag reports whether an argument is a flag and not a negative time.
func isFlag(arg string) bool {
	name, dashed := strings.CutPrefix(arg, "-")
	return dashed && strings.IndexAny(name, "0123456789.") != 0
}

func root(p *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lockkeeper",
		Short: "Let many agents and people change one codebase at the same time",
		Long: `Lockkeeper lets many agents and people change one codebase at the same time
without overwriting each other: each declares the files it reads and writes,
and acquires all of them at once, or waits its turn.`,
		Example: `  lockkeeper demo
  lockkeeper init
  lockkeeper lock exec --write app/user.rb --wait 5m -- claude -p "fix the user model"
  lockkeeper status`,
		Version:       project.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          command.Subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(p.In)
	cmd.SetOut(p.Out)
	cmd.SetErr(p.Err)
	cmd.SetVersionTemplate("lockkeeper {{.Version}}\n")
	cmd.SetFlagErrorFunc(p.WrongFlag)
	cmd.SetHelpCommand(helpCommand())
	f := cmd.PersistentFlags()
	f.StringVar(&p.WorkDir, "dir", "", "run as if started in this `directory`")
	f.StringVar(&p.Store, "store", "", "where to keep locks: an SQLite `path`, or postgres://…")
	f.BoolVar(&p.JSON, "json", false, "answer with JSON")
	f.BoolVar(&p.Quiet, "quiet", false, "print only answers and errors, without notes and next steps")
	f.BoolVar(&p.Plain, "no-color", false, "print without colors, as with NO_COLOR=1")
	all := []*cobra.Command{versionCommand(p), exitCodesTopic(), manCommand()}
	for _, commands := range []func(*command.Program) []*cobra.Command{
		inspect.Commands, locks.Commands, landings.Commands, jobs.Commands, flows.Commands, demo.Commands, agents.Commands, compat.Commands, server.Commands,
	} {
		all = append(all, commands(p)...)
	}
	addGrouped(cmd, all)
	takeNothing(cmd)
	complete(p, cmd)
	return cmd
}

// takeNothing makes every command below cmd refuse arguments unless it says which it takes.
func takeNothing(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if takeNothing(sub); sub.Args == nil && !sub.HasSubCommands() {
			sub.Args = command.Exactly(0, "no arguments")
		}
	}
}

func versionCommand(p *command.Program) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, commit and build",
		Example: "  lockkeeper version\n  lockkeeper version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.JSON {
				return p.PrintJSON(project.Built())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "lockkeeper", project.Version())
			return err
		},
	}
}

// Process runs the command line of this process and returns the exit code.
func Process() int {
	io, err := term.System()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lockkeeper:", err)
		return command.ExitFailed
	}
	return Main(context.Background(), io, os.Args[1:])
}
