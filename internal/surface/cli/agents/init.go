package agents

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// initOptions holds the options that all init commands share.
type initOptions struct {
	project.InitOptions
	deployment string
	gitHook    bool
}

func (o *initOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Space, "space", "", "join the space with this `id`, which must exist")
	f.StringVar(&o.deployment, "deployment", "", "how many machines work on this codebase: single-node or multi-node (default: multi-node on PostgreSQL)")
	f.BoolVar(&o.Restored, "restored", false, "accept a database that was copied or restored from a backup")
	f.BoolVar(&o.NewWorld, "new-world", false, "start an empty lock database although the old locks are gone; asks on a terminal")
	f.BoolVar(&o.gitHook, "git-hook", false, "install a git hook that refuses commits of changes that no lock covers")
}

func (p *program) initCommand() *cobra.Command {
	var o enrolOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set up Lockkeeper in this directory",
		Long: `Make this directory, or the one given with --dir, the root of a space: paths
below it can be locked. It creates .lockkeeper, which git ignores, and
lockkeeper.yaml. Running it again is harmless.

Use PostgreSQL if several machines work on the codebase. init then writes
deployment: multi-node, or the value of --deployment, and the id of the space
into lockkeeper.yaml. A clone with this file joins the space with a plain init.

If locks existed here and are gone, as after git clean -fdx, init refuses,
because holders of the old locks would not see the new ones. If no holder is
left, --new-world creates an empty lock database after asking on a terminal. It
moves the rest of the old one aside.

With --git-hook, git runs lockkeeper gate changes before every commit and refuses
changes that no lock covers. The hook is shared by all work trees of the
repository; in a work tree without Lockkeeper it lets every commit pass, with a
note. It does not replace another pre-commit hook.`,
		Example: `  lockkeeper init
  lockkeeper init --store postgres://lock@db.example/locks            # several machines
  lockkeeper init --store postgres://lock@db.example/locks --space ID # join one of them
  lockkeeper init --restored                                          # after restoring a backup
  lockkeeper init --git-hook                                          # refuse commits without a lock
  lockkeeper init claude                                              # check the writes of Claude Code
  lockkeeper init --undo                                              # stop checking agents
  lockkeeper init book                                                # a book, with chapters locked by name`,
		Args: command.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.undo {
				return p.dismiss(cmd, o, enrol.Hosts()...)
			}
			done, err := p.initialise(cmd.Context(), o.initOptions)
			if err != nil {
				return err
			}
			return p.showInit(done, "lockkeeper init claude (or codex, gemini) for interactive agents; lockkeeper run --plan FILE for a plan of tasks (see run --help); or lockkeeper lock exec --write PATH -- COMMAND")
		},
	}
	o.initOptions.flags(cmd.Flags())
	o.flags(cmd)
	for _, h := range enrol.Hosts() {
		cmd.AddCommand(p.agentCommand(h))
	}
	for _, name := range resource.PresetNames() {
		cmd.AddCommand(p.presetCommand(name))
	}
	return cmd
}

// initialise makes a root, and with --git-hook installs the hook.
func (p *program) initialise(ctx context.Context, o initOptions) (*project.InitResult, error) {
	o.Confirm = func(act, facts string) error {
		return p.Confirm(act, facts, map[bool]string{true: "restored", false: "new locks"}[o.Restored])
	}
	s := p.Settings()
	s.Deployment = o.deployment
	done, err := project.Init(ctx, s, o.InitOptions)
	if err == nil && o.gitHook {
		err = p.installHook(ctx, done)
	}
	return done, err
}

// installHook installs the git hook, and adds it to what init made.
func (p *program) installHook(ctx context.Context, done *project.InitResult) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	path, err := git.InstallHook(ctx, git.NewWorkTree(done.Root, p.Dir, p.Env), program)
	if path != "" {
		done.Made = append(done.Made, path)
	}
	return err
}

// showInit prints what init made, and the next step.
func (p *program) showInit(done *project.InitResult, next string) error {
	if p.JSON {
		return p.PrintJSON(done)
	}
	if done.Already && len(done.Made) == 0 {
		fmt.Fprintf(p.Out, "%s is already a root (space %s); nothing changed\n", term.Clean(done.Root), done.Space)
		return nil
	}
	fmt.Fprintf(p.Out, "%s is ready: space %s, made %s\n", term.Clean(done.Root), done.Space, strings.Join(done.Made, ", "))
	if done.NextMachine != "" {
		fmt.Fprintf(p.Out, "next machine: %s, or lockkeeper init where lockkeeper.yaml is committed\n", term.Clean(done.NextMachine))
	}
	if len(done.Allowed) > 0 {
		fmt.Fprintf(p.Out, "the gate may write only to: %s, and none of these exist here; change gate.allowed_write_paths in %s\n", term.Clean(strings.Join(done.Allowed, ", ")), config.FileName)
	}
	p.Advise(next)
	return nil
}
