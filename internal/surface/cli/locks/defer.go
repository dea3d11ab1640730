package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"lockkeeper/internal/landing"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session/deferred"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type deferOptions struct {
	whole, list   bool
	session, base string
}

func (p *program) deferCommand() *cobra.Command {
	var o deferOptions
	cmd := &cobra.Command{
		Use:   "defer PATH <PATCH",
		Short: "Queue a patch to land when its file is unlocked",
		Long: `Queue a change to a file that another holder has locked. Standard input is a unified
diff of that one file, or with --whole its new content. The change lands through the
gate when the file is unlocked, if it still applies. Otherwise it is kept: see
lockkeeper rescue. With --whole the replaced content must be known: what the agent's
session has read, or --base. If the lines of a hunk occur in several places, it applies
only to an unchanged file.

You need not wait. Every release and every hook lands the changes that are due, and so
does this command if the file is unlocked already.`,
		Example: `  git diff app/models/user.rb | lockkeeper defer app/models/user.rb
  lockkeeper defer --list`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return command.Exactly(0, "no path with --list")(cmd, args)
			}
			return command.Exactly(1, "one path")(cmd, args)
		},
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, args []string) error {
			q := deferred.Open(a)
			if o.list {
				return p.deferredList(cmd.Context(), q)
			}
			return p.deferPatch(cmd.Context(), a, q, args[0], o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.whole, "whole", false, "read the whole new content from standard input")
	f.StringVar(&o.base, "base", "", "the version of the file that the change is based on: nothing, the `SHA-256` of its content, or a version")
	f.BoolVar(&o.list, "list", false, "land the changes that are due, and list the rest")
	f.StringVar(&o.session, "session", "", "the `id` of the session to notify (default: from the agent's environment)")
	return cmd
}

func (p *program) deferPatch(ctx context.Context, a *project.Project, q *deferred.Queue, path string, o deferOptions) error {
	text, err := io.ReadAll(io.LimitReader(p.In, deferred.MaxSize+1))
	if err != nil {
		return err
	}
	by, err := process.Holder()
	if err != nil {
		return err
	}
	patch := deferred.Patch{Path: path, By: by}
	if err := p.authorOf(ctx, a, &patch, o); err != nil {
		return err
	}
	if patch, err = q.Put(ctx, patch, text, o.whole); err != nil {
		return err
	}
	ended, landing := q.Land(ctx) // may fail only for the change of another session
	for _, e := range ended {
		if e.ID == patch.ID {
			patch = e
		}
	}
	return errors.Join(p.Answer(patch, "%s", patchLine(patch)), landing)
}

// authorOf sets the session of a patch and the version of the file that it is based on. Any
// caller may name a session to notify, but what a session has read counts only for processes
// that it started.
func (p *program) authorOf(ctx context.Context, a *project.Project, patch *deferred.Patch, o deferOptions) error {
	named, _ := p.Lookup("CLAUDE_CODE_SESSION_ID")
	named = cmp.Or(o.session, named)
	patch.Session = named
	base := o.base
	file, err := a.File(patch.Path)
	if err != nil {
		return err
	}
	for _, s := range p.SessionsAbove(ctx) {
		if named != "" && s.ID != named {
			continue
		}
		patch.Session, patch.By = s.ID, s.Callsign
		if base == "" {
			if base, err = p.Sessions.Known(s, file); err != nil {
				return err
			}
		}
		break
	}
	if base == "" {
		return nil
	}
	known, err := landing.ParseBase(a, file, base)
	if err == nil {
		patch.Base = *known
	}
	return err
}

// landDue lands deferred patches for files that are unlocked now. Commands that release
// locks call it; they succeed even if a patch cannot land.
func landDue(ctx context.Context, p *command.Program, a *project.Project) {
	ended, err := deferred.Open(a).Land(ctx)
	for _, patch := range ended {
		fmt.Fprintln(p.Err, "deferred:", patchLine(patch))
	}
	if err != nil {
		p.Say("cannot land a deferred change yet: " + err.Error())
	}
}

func patchLine(patch deferred.Patch) string {
	text := "waits until the file is unlocked"
	switch patch.State {
	case deferred.Landed:
		text = "has landed"
	case deferred.Rescued:
		text = "could not land: " + term.Clean(patch.Why) + "; it is kept: lockkeeper rescue show " + patch.Rescue
	}
	return fmt.Sprintf("%s  %s  by %s: %s", patch.ID, term.Clean(patch.Path), term.Clean(patch.By), text)
}

func (p *program) deferredList(ctx context.Context, q *deferred.Queue) error {
	_, landing := q.Land(ctx)
	aside, setting := q.SetAside()
	for _, text := range aside {
		p.Say(text)
	}
	list, err := q.List()
	if err = errors.Join(err, landing, setting); err != nil {
		return err
	}
	return p.Show(acts.OrEmpty(list), func() {
		for _, patch := range list {
			fmt.Fprintln(p.Out, patchLine(patch))
		}
	})
}
