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
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
)

type claimOptions struct {
	onConflict     string
	instance       string
	prompt         string
	reason         string
	read           bool
	poll, patience term.Duration
	asked          bool // --on-conflict was given
}

// What --on-conflict may be.
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
		Long: `Claim resources by the names that lockkeeper.yaml gives them, or files by their
paths: all of them or none. A claim stays until lockkeeper unclaim, or, with a command
after --, while that runs.

What somebody else has is asked about on a terminal: wait, cancel or override. Without
a terminal --on-conflict answers: cancel (the default, exit code 3), wait (exit code 4
when that was in vain) or override-stale, which takes over only from who is gone. An
agent never overrides.

All claims of one session carry one id, such as CLI-12345; --instance, or
LOCKKEEPER_INSTANCE, gives another. With locks_file set, the claims are also shown in
that file, and what other tools write there counts: see docs/author.md.`,
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
				return command.Usage(cmd, fmt.Sprintf("--on-conflict %q is none of wait, cancel and override-stale", o.onConflict))
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
	f.StringVar(&o.onConflict, "on-conflict", onCancel, "what to do about what somebody else has, without asking: wait, cancel or override-stale")
	f.StringVar(&o.instance, "instance", "", "the `id` under which this session claims (default: one for this terminal or agent)")
	f.StringVar(&o.prompt, "prompt", "", "claim what this `prompt` of lockkeeper.yaml works on; the names say which chapters and so on")
	f.StringVar(&o.reason, "reason", "", "what the claim is for, as others will see it")
	f.BoolVar(&o.read, "read", false, "claim for reading: others may read, nobody may write")
	f.Var(&o.poll, "poll", "how often to look again while waiting")
	f.Var(&o.patience, "patience", "how long to wait before asking again, or giving up")
	cmd.AddCommand(p.claimStatusCommand(), p.claimClearCommand())
	return cmd
}

// mistyped refuses a lone word that is nearly a command of this group, and neither a
// resource nor a file.
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
		return nil // whatever is wrong with it is told when it is claimed
	}
	return &lockkeeper.InputError{Field: "name", Value: word, Reason: "neither a resource nor a file, and no command of " + cmd.CommandPath(),
		Next: fmt.Sprintf("did you mean %s %s? A new file of this name is claimed as ./%s", cmd.CommandPath(), near, word)}
}

// instance is who claims here.
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
			return p.noClaimNeeded(o.prompt)
		}
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
	answer, err := p.settleClaim(ctx, au, w, o)
	if err != nil {
		return err
	}
	if argv == nil {
		return p.showClaimed(by, o.instance, answer)
	}
	return p.claimFor(ctx, a, au, by, answer, argv)
}

func (p *program) noClaimNeeded(prompt string) error {
	if p.JSON {
		return p.PrintJSON(map[string]any{"claimed": []string{}})
	}
	_, err := fmt.Fprintf(p.Out, "prompt %s changes nothing that is claimed\n", term.Clean(prompt))
	return err
}

// claimFor runs a command while a claim is held, and the file with the claims agrees
// with them.
func (p *program) claimFor(ctx context.Context, a *project.Project, au *author.Author, by author.Instance, answer *author.Result, argv []string) error {
	if answer.Grant == nil {
		return &lockkeeper.RefusedError{Act: "running a command under a claim", Reason: "this session has claimed all of it already, so the claim would not end with the command",
			Next: "run the command as it is, or unclaim first"}
	}
	p.Env = append(p.Env[:len(p.Env):len(p.Env)], author.InstanceVariable+"="+by.ID) // what runs in there has what is claimed here
	waiting, stop := command.Interruptible(ctx)
	defer stop()
	watch := au.Watch(ctx, p.tellNote, func(err error) { p.Say("the file with the claims: " + err.Error()) })
	err := locks.RunUnder(ctx, waiting, p.Program, a, answer.Grant, argv)
	watch.Close()
	if _, notes, failed := au.Claims(ctx); failed != nil {
		p.tellNotes(notes)
		return errors.Join(err, failed)
	}
	return err
}

// showClaimed says what came of a claim, and how to give it back under the id that was
// named for this claim alone, if one was.
func (p *program) showClaimed(by author.Instance, named string, answer *author.Result) error {
	if p.JSON {
		out := map[string]any{"instance": by.ID, "claimed": command.ListOf(answer.Names), "already": command.ListOf(answer.Already), "overrode": command.ListOf(answer.Overrode), "notes": command.ListOf(answer.Notes)}
		if answer.Grant != nil {
			out["grant_id"] = answer.Grant.ID
		}
		return p.PrintJSON(out)
	}
	for _, s := range answer.Overrode {
		lost := fmt.Sprintf("%s lost %s", s.Instance, strings.Join(s.Resources, ", "))
		if len(s.Kept) > 0 {
			lost += "; what was not committed there is in lockkeeper rescue list: " + strings.Join(s.Kept, ", ")
		}
		fmt.Fprintln(p.Err, "note: "+term.Clean(lost))
	}
	if len(answer.Already) > 0 {
		fmt.Fprintf(p.Out, "already yours: %s\n", term.Clean(strings.Join(answer.Already, ", ")))
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
