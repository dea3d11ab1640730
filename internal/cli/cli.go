package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
	"lockkeeper/internal/session"
)

// program is one call of the program: its IO and the flags of every command.
type program struct {
	*IO
	Out        *output // instead of the IO's
	args       []string
	dir, store string
	json       bool

	purposes map[string]string // why those hold their grants who are in the way
	book     *session.Book     // of the codebase that is open; nil: none is
}

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, io *IO, args []string) int {
	// A reader who leaves early must not end us before we have cleaned up.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	p := &program{IO: io, Out: &output{file: io.Out}, args: args}
	root := p.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if failed := p.Out.failed(); failed != nil {
		err = failed
	}
	p.report(err)
	die(err)
	return exitCode(err)
}

func (p *program) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lockkeeper",
		Short: "Let many agents and people change one codebase at the same time",
		Long: `Lockkeeper lets many agents and people change one codebase at the same time
without writing over each other: each declares the files it reads and writes,
and gets all of them at once, or waits its turn.`,
		Example: `  lockkeeper demo
  lockkeeper init
  lockkeeper lock exec --write app/user.rb --wait 5m -- claude -p "fix the user model"
  lockkeeper status`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(p.In)
	cmd.SetOut(p.Out)
	cmd.SetErr(p.Err)
	cmd.SetVersionTemplate("lockkeeper {{.Version}}\n")
	cmd.SetFlagErrorFunc(p.wrongFlag)
	cmd.SetHelpCommand(helpCommand())
	cmd.CompletionOptions.HiddenDefaultCmd = true
	f := cmd.PersistentFlags()
	f.StringVar(&p.dir, "dir", "", "work as if started in this `directory`")
	f.StringVar(&p.store, "store", "", "where locks are kept: an SQLite `path`, or postgres://…")
	f.BoolVar(&p.json, "json", false, "answer with JSON")
	cmd.AddCommand(versionCommand(), p.leaseCommand(), p.tidyCommand(), p.opCommand(), p.claimCommand(), p.unclaimCommand())
	cmd.AddCommand(p.initCommand(), p.statusCommand(), p.doctorCommand(), p.whyCommand(), p.lockCommand(), p.gateCommand(),
		p.undoCommand(), p.rescueCommand(), p.jobCommand(), p.auditCommand(), p.configCommand(), p.demoCommand(), p.simulateCommand(),
		p.runCommand(), p.decideCommand(), p.reportCommand(), p.askCommand(), p.linksCommand(),
		p.serveCommand(), p.loginCommand(), p.tokenCommand(), p.hookCommand(), p.mcpCommand(), p.offCommand(), p.deferCommand())
	return cmd
}

// versionCommand is --version as a command.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Which version this is",
		Example: "  lockkeeper version",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "lockkeeper", version())
			return err
		},
	}
}

func version() string { return app.Version() }

// exactly takes so many arguments, which what names.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usage(cmd, fmt.Sprintf("needs %s, got %s", what, counted(len(args), "argument")))
	}
}

// base is the directory that the program works in.
func (p *program) base() string {
	if p.dir == "" || filepath.IsAbs(p.dir) {
		return cmp.Or(p.dir, p.Dir)
	}
	return filepath.Join(p.Dir, p.dir)
}

func (p *program) settings() app.Settings {
	return app.Settings{Dir: p.base(), Store: p.store, Env: p.lookup, Caller: p.caller}
}

// with runs a command on the open codebase.
func (p *program) with(ctx context.Context, run func(*app.App) error) error {
	return p.withSettings(ctx, p.settings(), run)
}

func (p *program) withSettings(ctx context.Context, s app.Settings, run func(*app.App) error) (err error) {
	a, err := app.Open(ctx, s)
	if err != nil {
		return err
	}
	p.noteRecovery(a.Recovery)
	p.book = session.Open(a)
	defer func() {
		p.book = nil
		if closing := a.Close(); err == nil {
			err = closing
		}
	}()
	err = run(a)
	if err != nil {
		p.purpose(ctx, a, err)
	}
	return err
}

// printJSON writes one value to standard output.
func (p *program) printJSON(value any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
