package agents

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/project/detect"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/doctor"
	"lockkeeper/internal/surface/view"
)

type initOptions struct {
	project.InitOptions
	deployment string
	agent      string        // the agent of runs, for a new configuration
	found      *detect.Found // what a new configuration is made of; nil: the configuration exists
	gitHook    string        // which commits the hook refuses: covered or held; empty: no hook
	pushHook   bool
}

func (o *initOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Space, "space", "", "join the space with this `id`, which must exist")
	f.StringVar(&o.deployment, "deployment", "", "how many machines work on this codebase: single-node or multi-node (default: multi-node on PostgreSQL)")
	f.BoolVar(&o.Restored, "restored", false, "accept a database that was copied or restored from a backup")
	f.BoolVar(&o.NewWorld, "new-world", false, "start an empty lock database although the old locks are gone; asks on a terminal")
	f.StringVar(&o.agent, "agent", "", "the agent of runs in a new lockkeeper.yaml: claude, codex, gemini, opencode, qwen, amp, cursor-agent, aider, or any `command` that reads its prompt from standard input")
	f.StringVar(&o.gitHook, "git-hook", "", "install a git hook that refuses commits of files that others hold, and with `covered` also changes that no lock covers: covered or held")
	f.Lookup("git-hook").NoOptDefVal = hookCovered
	f.BoolVar(&o.pushHook, "git-push-hook", false, "install a git hook that refuses to push commits of files that others hold")
}

func (p *program) initCommand() *cobra.Command {
	var o enrolOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set up Lockkeeper in this directory",
		Long: `Make this directory, or the one given with --dir, the root of a space: paths
below it can be locked. It creates .lockkeeper, which git ignores, and
lockkeeper.yaml. Running it again is harmless.

For lockkeeper.yaml it looks at the codebase: its languages, package managers, tests,
linters and generated files, and the agents on this machine. It shows the file and asks
on a terminal, unless --yes is given. An existing file is not replaced.

Use PostgreSQL if several machines work on the codebase. init then writes
deployment: multi-node, or the value of --deployment, and the id of the space
into lockkeeper.yaml. A clone with this file joins the space with a plain init.

If locks existed here and are gone, as after git clean -fdx, init refuses.
Holders of the old locks would not see the new ones. If no holder is
left, --new-world creates an empty lock database after asking on a terminal. It
moves the rest of the old one aside.

With --git-hook, git runs lockkeeper gate changes before every commit and refuses
files that others hold, and changes that no lock covers; with --git-hook=held only
the former. --git-push-hook does the same before a push, for commits that passed
the first hook by. A person at a terminal is asked. The hooks are shared by all work
trees of the repository; in a work tree without Lockkeeper they let everything pass,
with a note. Another hook of that name runs after them.`,
		Example: `  lockkeeper init
  lockkeeper init --yes --agent 'my-agent --flag'                      # any command can be the agent of runs
  lockkeeper init --store postgres://lock@db.example/locks            # several machines
  lockkeeper init --store postgres://lock@db.example/locks --space ID # join one of them
  lockkeeper init --restored                                          # after restoring a backup
  lockkeeper init --git-hook                                          # refuse commits without a lock
  lockkeeper init --git-hook=held                                     # refuse only commits of files that others hold
  lockkeeper init claude                                              # check the writes of Claude Code
  lockkeeper init --undo                                              # stop checking agents
  lockkeeper init book                                                # a book, with chapters locked by name`,
		Args: command.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.undo {
				return p.dismiss(cmd, o, enrol.Hosts()...)
			}
			if err := p.propose(cmd.Context(), &o.initOptions); err != nil {
				return err
			}
			if o.found != nil && p.Attended() {
				if err := p.AgreeUnlessYes(o.yes, "init", p.Base()+" will get .lockkeeper/ and the "+config.FileName+" shown above."); err != nil {
					return err
				}
			}
			done, err := p.initialize(cmd.Context(), o.initOptions)
			if err != nil {
				return err
			}
			return p.showInit(done, o.found, "lockkeeper init claude (or codex, gemini, opencode) for interactive agents; lockkeeper run --plan FILE for a plan of tasks (see run --help); or lockkeeper lock exec --write PATH -- COMMAND")
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

// initialize makes a root, and installs the hooks of git that were asked for.
func (p *program) initialize(ctx context.Context, o initOptions) (*project.InitResult, error) {
	hooks, err := o.hooks()
	if err != nil {
		return nil, err
	}
	o.Confirm = func(act, facts string) error {
		return p.Confirm(act, facts, map[bool]string{true: "restored", false: "new locks"}[o.Restored])
	}
	s := p.Settings()
	s.Deployment = o.deployment
	done, err := project.Init(ctx, s, o.InitOptions)
	for _, h := range hooks {
		if err == nil {
			err = p.installHook(ctx, done, h)
		}
	}
	return done, err
}

type enrolOptions struct {
	initOptions
	yes, undo, user bool
}

type enrolled struct {
	Root   string         `json:"root"`
	Agent  string         `json:"agent"`
	Undone bool           `json:"undone"`
	Edits  []enrolEdit    `json:"edits"`
	Doctor *doctor.Report `json:"doctor,omitempty"`
}

type enrolEdit struct {
	Path string `json:"path"`
	What string `json:"what"`
	Note string `json:"note,omitempty"`
	Diff string `json:"diff"`
}

func (p *program) agentCommand(h enrol.Host) *cobra.Command {
	var o enrolOptions
	cmd := &cobra.Command{
		Use:   h.Name,
		Short: "Check the writes of " + h.Name + " in this codebase",
		Long: `Check the writes of ` + h.Name + `: install hooks that refuse writes to files that others hold,
the MCP server, and a short instruction. If this directory is not in a space yet, it
becomes the root of one. The command shows the changes to each file, asks, and changes
nothing else in them. Then it tests what is enforced, as lockkeeper doctor does. Running
it again is harmless.

Claude Code and Gemini CLI find the settings of a project only when they start in its root.
So the hooks are also added to your own settings, where they check every codebase with
locks and ignore all other files.

--undo removes what is in this codebase, and with --user also what is in your own settings.
A file in the codebase that was not edited since is exactly as before. It asks
you to type an answer, so it needs a terminal; agents cannot run it. With --yes it does
not ask, but without a terminal it is refused while a session is open.`,
		Example: "  lockkeeper init " + h.Name + "\n  lockkeeper init " + h.Name + " --undo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.undo {
				return p.dismiss(cmd, o, h)
			}
			return p.enrol(cmd, o, h)
		},
	}
	o.initOptions.flags(cmd.Flags())
	o.flags(cmd)
	return cmd
}

func (o *enrolOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.undo, "undo", false, "remove what init added to the files of agents")
	cmd.Flags().BoolVar(&o.user, "user", false, "with --undo, also remove the hooks from your own settings")
}

// enrol adds the hooks of an agent, after asking.
func (p *program) enrol(cmd *cobra.Command, o enrolOptions, h enrol.Host) error {
	root, err := project.FindRoot(p.Settings())
	site := enrol.At(root, p.Lookup)
	isNew := lockkeeper.CodeOf(err) == lockkeeper.CodeInput
	if isNew {
		site, err = enrol.Site{Root: p.Base(), Env: p.Lookup}, nil
	}
	if err != nil {
		return err
	}
	plan, err := p.planOf(site, h)
	if err != nil {
		return err
	}
	if isNew {
		if err := p.propose(cmd.Context(), &o.initOptions); err != nil {
			return err
		}
	}
	if err := p.agree(plan, o, "init "+h.Name); err != nil {
		return err
	}
	if isNew {
		done, err := p.initialize(cmd.Context(), o.initOptions)
		if err != nil {
			return err
		}
		if !p.JSON {
			fmt.Fprintf(p.Out, "%s is ready: space %s\n", term.Clean(done.Root), done.Space)
		}
	}
	if err := p.carryOut(cmd, plan); err != nil {
		return err
	}
	return p.afterwards(cmd.Context(), plan)
}

func (p *program) planOf(site enrol.Site, h enrol.Host) (*enrol.Enrolment, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := site.Find(self)
	if err != nil {
		return nil, err
	}
	if site.Status(h).Program == "" && !p.JSON {
		p.Note("%s is not in PATH; its files are written anyway", h.Program)
	}
	return site.Plan(h, program)
}

// agree shows the edits, and asks.
func (p *program) agree(plan *enrol.Enrolment, o enrolOptions, act string) error {
	if len(plan.Edits) == 0 {
		return nil
	}
	if !p.JSON {
		for _, e := range plan.Edits {
			fmt.Fprint(p.Out, command.CleanLines(e.Diff()))
			if e.Note != "" {
				fmt.Fprintf(p.Out, "note: %s: %s\n", term.Clean(e.Path), term.Clean(e.Note))
			}
		}
	}
	return p.AgreeUnlessYes(o.yes, act, term.Counted(len(plan.Edits), "file")+" of "+plan.Host.Name+" will be changed as shown. (--yes does not ask.)")
}

// carryOut makes the edits, under locks on the files in the codebase. The plan was made
// before the project was open, so it is completed first with the directory for its records.
func (p *program) carryOut(cmd *cobra.Command, seen *enrol.Enrolment) error {
	if len(seen.Edits) == 0 {
		return nil
	}
	return p.With(cmd.Context(), func(a *project.Project) error {
		var paths []string
		for _, e := range seen.Edits {
			if e.InHome() {
				continue
			}
			if at, err := a.Root.Resolve("", e.Path, lockkeeper.Write); err == nil { // a link to outside the root has no lock here
				paths = append(paths, at.Path)
			}
		}
		plan := seen.In(enrol.At(a.Root.Dir(), a.Env))
		if len(paths) == 0 {
			return plan.Apply(cmd.Context())
		}
		return p.Under(cmd, a, "enrol "+plan.Host.Name, command.OwnLock{}, paths, func(ctx context.Context, _ *lockkeeper.Grant) error { return plan.Apply(ctx) })
	})
}

// afterwards tests the new protections and prints their levels.
func (p *program) afterwards(ctx context.Context, plan *enrol.Enrolment) error {
	h := plan.Host
	report, err := doctor.Examine(ctx, p.Settings())
	if err != nil {
		return err
	}
	broken := false
	for _, w := range report.Protections {
		broken = broken || w.Writer == h.Name && w.Broken
	}
	if p.JSON {
		if err := p.PrintJSON(enrolledOf(report.Root, plan, false, report)); err != nil {
			return err
		}
	} else {
		if len(plan.Edits) == 0 {
			fmt.Fprintf(p.Out, "%s is already enrolled; nothing changed\n", h.Name)
		}
		for _, w := range report.Protections {
			if w.Writer == h.Name && w.Level != view.Enforced {
				fmt.Fprintf(p.Out, "%s: %s: %s\n", w.Level, term.Clean(w.Name), term.Clean(lockkeeper.LocalTimes(w.Fact)))
				p.Advise(w.Next)
			}
		}
		fmt.Fprintln(p.Out, term.Clean(report.Summary))
	}
	if broken {
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}

func enrolledOf(root string, plan *enrol.Enrolment, undone bool, report *doctor.Report) enrolled {
	out := enrolled{Root: root, Agent: plan.Host.Name, Undone: undone, Edits: []enrolEdit{}, Doctor: report}
	for _, e := range plan.Edits {
		out.Edits = append(out.Edits, enrolEdit{e.Path, e.What, e.Note, e.Diff()})
	}
	return out
}

// mayDismiss returns an error unless a person at a terminal runs the command act. A script may
// run it with --yes if no session is open, because an open session would continue unchecked.
func (p *program) mayDismiss(ctx context.Context, act string, yes bool) error {
	return p.AsPerson(ctx, act, func(a *project.Project) error {
		switch {
		case !yes:
			return p.MayForceWithoutYes(act)
		case p.Attended():
			return nil
		}
		live, err := session.Open(a).Live(ctx)
		if err != nil || len(live) == 0 {
			return err
		}
		s := live[0]
		return &lockkeeper.RefusedError{Act: act, Reason: fmt.Sprintf("this is not a terminal, and %s (%s) has worked here since %s, one of %s", s.Callsign, s.Agent, term.Stamp(s.Began), term.Counted(len(live), "session")),
			Next: "run it in a terminal, or after these sessions ended"}
	})
}

func (p *program) dismiss(cmd *cobra.Command, o enrolOptions, hosts ...enrol.Host) error {
	if err := p.mayDismiss(cmd.Context(), "init --undo", o.yes); err != nil {
		return err
	}
	root, err := project.FindRoot(p.Settings())
	site := enrol.At(root, p.Lookup)
	if err != nil {
		return err
	}
	answers, edits := []enrolled{}, 0
	for _, h := range hosts {
		plan, err := site.Undo(h, o.user)
		if err != nil {
			return err
		}
		if err := p.agree(plan, o, "init --undo"); err != nil {
			return err
		}
		if err := p.carryOut(cmd, plan); err != nil {
			return err
		}
		answers = append(answers, enrolledOf(site.Root, plan, true, nil))
		edits += len(plan.Edits)
		if len(plan.Edits) > 0 && !p.JSON {
			fmt.Fprintf(p.Out, "%s is no longer enrolled: %s changed\n", h.Name, term.Counted(len(plan.Edits), "file"))
		} else if !p.JSON && len(hosts) == 1 {
			fmt.Fprintf(p.Out, "%s was not enrolled; nothing changed\n", h.Name)
		}
	}
	if len(hosts) > 1 { // without a name, everything that refuses writes
		hooks, err := git.Hooks(cmd.Context(), git.NewWorkTree(root, root, p.Env))
		if err != nil {
			return err
		}
		for _, h := range hooks {
			if err := h.Remove(cmd.Context()); err != nil {
				return err
			}
			edits++
			if !p.JSON {
				fmt.Fprintf(p.Out, "%s: %s\n", term.Clean(h.Path), h.What)
			}
		}
	}
	if p.JSON {
		return p.PrintJSON(answers)
	}
	if edits == 0 && len(hosts) > 1 {
		fmt.Fprintln(p.Out, "no agent is enrolled here; nothing changed")
	}
	return nil
}
