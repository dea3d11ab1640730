package compat

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/compat/author"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) unclaimCommand() *cobra.Command {
	var instance string
	cmd := &cobra.Command{
		Use:   "unclaim [NAME|PATH…]",
		Short: "Release claims of this session",
		Long: `Give back what this session has claimed: the named resources, or all of them. What
somebody else has, perhaps because they overrode the claim, stays as it is, and so does
a claim with a command that still runs: exit code 0 and a note.`,
		Example: `  lockkeeper unclaim Chapter_03
  lockkeeper unclaim`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error { return p.unclaim(cmd.Context(), a, instance, names) })
		},
	}
	cmd.Flags().StringVar(&instance, "instance", "", "the `id` under which they were claimed (default: that of this session)")
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
		why := "it is not yours to give back"
		if s.Foreign {
			why = fmt.Sprintf("%s claimed it with another tool, in the lock file, and gives it back there", term.Clean(s.Instance))
		}
		fmt.Fprintf(p.Err, "note: %s is claimed by %s since %s, and stays so: %s\n", term.Clean(strings.Join(s.Resources, ", ")), term.Clean(s.Instance), term.Stamp(s.Since), why)
		if s.MayOverride() {
			p.Advise(fmt.Sprintf("%s is gone; lockkeeper claim clear, on a terminal, frees what it left", term.Clean(s.Instance)))
		}
	}
	if len(done.Kept) > 0 {
		fmt.Fprintf(p.Err, "note: %s %s claimed until the command ends that runs under the claim\n", term.Clean(strings.Join(done.Kept, ", ")), term.Plural(len(done.Kept), "stays", "stay"))
	}
	for _, name := range done.Unclaimed {
		fmt.Fprintf(p.Err, "note: nobody has claimed %s\n", term.Clean(name))
	}
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(map[string]any{"instance": by.ID, "unclaimed": command.ListOf(done.Freed), "kept": command.ListOf(done.Kept), "others": command.ListOf(done.Others), "notes": command.ListOf(done.Notes)})
	}
	what := "nothing was claimed by " + term.Clean(by.ID)
	switch {
	case len(done.Freed) > 0:
		what = "given back: " + term.Clean(strings.Join(done.Freed, ", "))
	case len(done.Kept)+len(done.Others) > 0:
		what = "nothing was given back"
	}
	_, err = fmt.Fprintln(p.Out, what)
	return err
}
