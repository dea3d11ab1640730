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

// initOptions says how a root is made, whatever kind of project it is for.
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
	f.BoolVar(&o.gitHook, "git-hook", false, "have git refuse commits of changes that no lock covers")
}

func (p *program) initCommand() *cobra.Command {
	var o enrolOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set up Lockkeeper in this directory",
		Long: `Make this directory, or the one given with --dir, the root of a space: paths
below it can be locked. It makes .lockkeeper, which git ignores, and
lockkeeper.yaml. Running it again is harmless.

PostgreSQL is for codebases that several machines work on: init writes
deployment: multi-node into lockkeeper.yaml, or what --deployment says, and the
id of the space. A clone that has this file joins the space by a plain init.

Where locks were before and are gone, as after git clean -fdx, it refuses: who
still works under the old locks would not see the new ones. When nobody does,
--new-world makes an empty lock database after asking on a terminal; what is
left of the old one is moved aside.

With --git-hook git asks lockkeeper gate changes before every commit, and
refuses one of changes that no lock covers. The hook is that of all work trees of
the repository; in one that is no root it lets every commit pass, with a note. A
pre-commit hook of somebody else stays as it is.`,
		Example: `  lockkeeper init
  lockkeeper init --store postgres://lock@db.example/locks            # several machines
  lockkeeper init --store postgres://lock@db.example/locks --space ID # join one of them
  lockkeeper init --restored                                          # after restoring a backup
  lockkeeper init --git-hook                                          # no commit without a lock
  lockkeeper init claude                                              # Claude Code asks before it writes
  lockkeeper init --undo                                              # it does no more
  lockkeeper init book                                                # a book, whose chapters are locked by name`,
		Args: command.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.undo {
				return p.dismiss(cmd, o, enrol.Hosts()...)
			}
			done, err := p.initialise(cmd.Context(), o.initOptions)
			if err != nil {
				return err
			}
			return p.showInit(done, "lockkeeper init claude, codex or gemini, where agents work in windows; lockkeeper run --plan FILE for a plan of tasks (run --help shows one); or lockkeeper lock exec --write PATH -- COMMAND")
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

// initialise makes a root, with what was asked for beside.
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

// installHook adds the hook to what init made.
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

// showInit says what init made, and what comes next in such a root.
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
		fmt.Fprintf(p.Out, "the gate may write to: %s, of which nothing exists here; change gate.allowed_write_paths in %s\n", term.Clean(strings.Join(done.Allowed, ", ")), config.FileName)
	}
	p.Advise(next)
	return nil
}
