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
		Long: `Release claims of this session: the named resources, or all of them. Resources that
another session holds, perhaps after an override, stay claimed, and so does a claim whose
command still runs: exit code 0 and a note.`,
		Example: `  lockkeeper unclaim Chapter_03
  lockkeeper unclaim`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error { return p.unclaim(cmd.Context(), a, instance, names) })
		},
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
	answer := map[string]any{"instance": by.ID, "unclaimed": command.ListOf(done.Freed), "kept": command.ListOf(done.Kept), "others": command.ListOf(done.Others), "notes": command.ListOf(done.Notes)}
	what := "nothing was claimed by " + term.Clean(by.ID)
	switch {
	case len(done.Freed) > 0:
		what = "released: " + term.Clean(strings.Join(done.Freed, ", "))
	case len(done.Kept)+len(done.Others) > 0:
		what = "nothing was released"
	}
	return p.Answer(answer, "%s", what)
}
