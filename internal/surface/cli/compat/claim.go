package compat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
)

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.claimCommand(), p.unclaimCommand(), p.leaseCommand(), p.tidyCommand(), p.linksCommand(), p.opCommand()}
}

type claimOptions struct {
	onConflict     string
	instance       string
	prompt         string
	reason         string
	read           bool
	poll, patience term.Duration
	asked          bool // --on-conflict was given
}

// The values of --on-conflict.
const (
	onWait          = "wait"
	onCancel        = "cancel"
	onOverrideStale = "override-stale"
)

func (p *program) claimCommand() *cobra.Command {
	o := claimOptions{poll: term.Duration(5 * time.Second), patience: term.Duration(2 * time.Minute)}
	cmd := &cobra.Command{
		Use:   "claim NAME|PATH… [-- COMMAND…]",
		Short: "Claim chapters, other named resources, or files",
		Long: `Claim resources by their names in lockkeeper.yaml, or files by their paths: all of
them or none. A claim stays until lockkeeper unclaim, or, with a command after --, while
the command runs.

If another session holds a resource, a terminal asks: wait, cancel or override. Without
a terminal --on-conflict decides: cancel (the default, exit code 3), wait (exit code 4
after --patience), or override-stale, which takes over only if the holder is gone. An
agent never overrides.

All claims of one session have one id, such as CLI-12345; --instance, or
LOCKKEEPER_INSTANCE, sets another. With locks_file set, that file also lists the claims,
and claims of other tools in it count: see docs/author.md.`,
		Example: `  lockkeeper claim Chapter_03
  lockkeeper claim Chapter_03 ImageRegistry -- claude -p "place the figures"
  lockkeeper claim --prompt 3 5
  lockkeeper claim status
  lockkeeper unclaim Chapter_03`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.asked = cmd.Flags().Changed("on-conflict")
			names, argv := args, []string(nil)
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				names, argv = args[:at], args[at:]
			}
			switch {
			case len(names) == 0 && o.prompt == "":
				return command.Usage(cmd, "names no resource; nothing was claimed")
			case cmd.ArgsLenAtDash() >= 0 && (len(argv) == 0 || argv[0] == ""):
				return command.Usage(cmd, "needs a command to run, after --")
			case !slices.Contains([]string{onWait, onCancel, onOverrideStale}, o.onConflict):
				return command.Usage(cmd, fmt.Sprintf("--on-conflict %q must be wait, cancel or override-stale", o.onConflict))
			}
			return p.With(cmd.Context(), func(a *project.Project) error {
				if len(args) == 1 && o.prompt == "" {
					if err := mistyped(cmd, a, args[0]); err != nil {
						return err
					}
				}
				return p.claim(cmd.Context(), a, o, names, argv)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.onConflict, "on-conflict", onCancel, "what to do if another session holds a resource, without asking: wait, cancel or override-stale")
	f.StringVar(&o.instance, "instance", "", "the `id` of the claims (default: one for this terminal or agent)")
	f.StringVar(&o.prompt, "prompt", "", "claim what this `prompt` of lockkeeper.yaml works on; the names select the chapters and so on")
	f.StringVar(&o.reason, "reason", "", "what the claim is for, shown to others")
	f.BoolVar(&o.read, "read", false, "claim for reading: others can read and cannot write")
	f.Var(&o.poll, "poll", "how often to check while waiting")
	f.Var(&o.patience, "patience", "how long to wait before asking again or giving up")
	cmd.AddCommand(p.claimStatusCommand(), p.claimClearCommand())
	return cmd
}

// mistyped returns an error for a single word that resembles a command of this group, and is
// neither a resource nor a file.
func mistyped(cmd *cobra.Command, a *project.Project, word string) error {
	var commands []string
	for _, c := range cmd.Commands() {
		commands = append(commands, c.Name())
	}
	near, found := config.Nearest(word, commands)
	if !found || strings.ContainsAny(word, "/.") {
		return nil
	}
	set, err := resource.Of(a.Config)
	if err != nil {
		return err
	}
	if _, unknown := set.Resolve(word); unknown == nil {
		return nil
	}
	l, err := a.Resolve(lockkeeper.Write, word)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(l.Path))); !errors.Is(err, fs.ErrNotExist) {
		return nil // the claim reports errors
	}
	return &lockkeeper.InputError{Field: "name", Value: word, Reason: "neither a resource nor a file nor a command of " + cmd.CommandPath(),
		Next: fmt.Sprintf("did you mean %s %s? To claim a new file of this name, write ./%s", cmd.CommandPath(), near, word)}
}

func (p *program) instance(named string) (author.Instance, error) {
	agent, _ := p.Agent()
	return author.InstanceOf(p.Env, agent, named, p.Person())
}

func (p *program) claim(ctx context.Context, a *project.Project, o claimOptions, names, argv []string) error {
	au, err := author.Open(a, p.Env)
	if err != nil {
		return err
	}
	by, err := p.instance(o.instance)
	if err != nil {
		return err
	}
	if o.prompt != "" {
		if names, err = au.Prompt(o.prompt, names); err != nil {
			return err
		}
		if len(names) == 0 {
			return p.Answer(map[string]any{"claimed": []string{}}, "prompt %s needs no claim", term.Clean(o.prompt))
		}
	}
	if names, err = p.spread(a, names); err != nil {
		return err
	}
	w := author.Request{By: by, Names: names, Mode: lockkeeper.Write, Reason: o.reason, Person: p.Person()}
	if o.read {
		w.Mode = lockkeeper.Read
	}
	if argv != nil {
		self, err := process.Self()
		if err != nil {
			return err
		}
		w.Worker = &self
	}
	answer, err := p.resolveClaim(ctx, au, w, o)
	if err != nil {
		return err
	}
	if argv == nil {
		return p.showClaimed(by, o.instance, answer)
	}
	return p.claimFor(ctx, a, au, by, answer, argv)
}

// spread replaces names that are lists or patterns by their paths. The name of a resource stays.
func (p *program) spread(a *project.Project, names []string) (paths []string, err error) {
	set, err := resource.Of(a.Config)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		found := []string{name}
		if _, unknown := set.Resolve(name); unknown != nil && strings.ContainsAny(name, "*?[,") {
			if found, err = p.Spread(name, false); err != nil {
				return nil, err
			}
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// claimFor runs a command under a claim, and keeps the claims file current meanwhile.
func (p *program) claimFor(ctx context.Context, a *project.Project, au *author.Author, by author.Instance, answer *author.Result, argv []string) error {
	if answer.Grant == nil {
		return &lockkeeper.RefusedError{Act: "running a command under a claim", Reason: "this session has already claimed all of these resources, and that claim would not end with the command",
			Next: "run the command without claim, or unclaim first"}
	}
	p.Env = append(p.Env[:len(p.Env):len(p.Env)], author.InstanceVariable+"="+by.ID) // the command uses the claims of this session
	waiting, stop := command.Interruptible(ctx)
	defer stop()
	watch := au.Watch(ctx, p.tellNote, func(err error) { p.Say("cannot update the claims file: " + err.Error()) })
	err := locks.RunUnder(ctx, waiting, p.Program, a, answer.Grant, argv)
	watch.Close()
	if _, notes, failed := au.Claims(ctx); failed != nil {
		p.tellNotes(notes)
		return errors.Join(err, failed)
	}
	return err
}

// showClaimed prints a claim and the command that releases it. named is the value of
// --instance.
func (p *program) showClaimed(by author.Instance, named string, answer *author.Result) error {
	if p.JSON {
		out := map[string]any{"instance": by.ID, "claimed": acts.OrEmpty(answer.Names), "already": acts.OrEmpty(answer.Already), "overrode": acts.OrEmpty(answer.Overrode), "notes": acts.OrEmpty(answer.Notes)}
		if answer.Grant != nil {
			out["grant_id"] = answer.Grant.ID
		}
		return p.PrintJSON(out)
	}
	for _, s := range answer.Overrode {
		lost := fmt.Sprintf("%s lost %s", s.Instance, strings.Join(s.Resources, ", "))
		if len(s.Kept) > 0 {
			lost += "; its uncommitted changes are kept, see lockkeeper rescue list: " + strings.Join(s.Kept, ", ")
		}
		fmt.Fprintln(p.Err, "note: "+term.Clean(lost))
	}
	if len(answer.Already) > 0 {
		fmt.Fprintf(p.Out, "already claimed by you: %s\n", term.Clean(strings.Join(answer.Already, ", ")))
	}
	if answer.Grant == nil {
		return nil
	}
	_, err := fmt.Fprintf(p.Out, "claimed by %s: %s\n", term.Clean(by.ID), term.Clean(strings.Join(answer.Names, ", ")))
	back := append([]string{"lockkeeper", "unclaim"}, answer.Names...)
	if named != "" {
		back = append(back, "--instance", named)
	}
	p.Advise(shellword.Join(back) + ", when you are done")
	return err
}

func (p *program) unclaimCommand() *cobra.Command {
	var instance string
	cmd := &cobra.Command{
		Use:   "unclaim [NAME|PATH…]",
		Short: "Release claims of this session",
		Long: `Release claims of this session: the named resources, or all of them. Resources that
another session holds, perhaps after an override, stay claimed, and so does a claim whose
command still runs: exit code 0 and a note.`,
		Example: `  lockkeeper unclaim Chapter_03
  lockkeeper unclaim`,
		Args: cobra.ArbitraryArgs,
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, names []string) error {
			return p.unclaim(cmd.Context(), a, instance, names)
		}),
	}
	cmd.Flags().StringVar(&instance, "instance", "", "the `id` of the claims (default: that of this session)")
	return cmd
}

func (p *program) unclaim(ctx context.Context, a *project.Project, instance string, names []string) error {
	au, err := author.Open(a, p.Env)
	if err != nil {
		return err
	}
	by, err := p.instance(instance)
	if err != nil {
		return err
	}
	done, err := au.Unclaim(ctx, by, names)
	if done == nil {
		return err
	}
	p.tellNotes(done.Notes)
	for _, s := range done.Others {
		why := "only its holder can release it"
		if s.Foreign {
			why = fmt.Sprintf("%s claimed it with another tool in the lock file, and releases it there", term.Clean(s.Instance))
		}
		fmt.Fprintf(p.Err, "note: %s stays claimed by %s since %s: %s\n", term.Clean(strings.Join(s.Resources, ", ")), term.Clean(s.Instance), term.Stamp(s.Since), why)
		if s.MayOverride() {
			p.Advise(fmt.Sprintf("%s is gone; lockkeeper claim clear, on a terminal, releases its claims", term.Clean(s.Instance)))
		}
	}
	if len(done.Kept) > 0 {
		fmt.Fprintf(p.Err, "note: %s %s claimed until the command under the claim ends\n", term.Clean(strings.Join(done.Kept, ", ")), term.Plural(len(done.Kept), "stays", "stay"))
	}
	for _, name := range done.Unclaimed {
		fmt.Fprintf(p.Err, "note: %s is not claimed\n", term.Clean(name))
	}
	if err != nil {
		return err
	}
	answer := map[string]any{"instance": by.ID, "unclaimed": acts.OrEmpty(done.Freed), "kept": acts.OrEmpty(done.Kept), "others": acts.OrEmpty(done.Others), "notes": acts.OrEmpty(done.Notes)}
	what := "nothing was claimed by " + term.Clean(by.ID)
	switch {
	case len(done.Freed) > 0:
		what = "released: " + term.Clean(strings.Join(done.Freed, ", "))
	case len(done.Kept)+len(done.Others) > 0:
		what = "nothing was released"
	}
	return p.Answer(answer, "%s", what)
}
