package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
	"lockkeeper/internal/deferred"
	"lockkeeper/internal/process"
)

type deferOptions struct {
	whole, list   bool
	session, base string
}

func (p *program) deferCommand() *cobra.Command {
	var o deferOptions
	cmd := &cobra.Command{
		Use:   "defer PATH <PATCH",
		Short: "Have a patch land when its file is free",
		Long: `Queue a change of a file that somebody else holds: a unified diff of that one file
from standard input, or with --whole its new content. It lands through the gate
once the file is free, if it still fits; otherwise it goes to the rescue shelf.
With --whole it must be known which content it replaces: what the agent's session
has read, or what --base says. A hunk of a diff whose lines are in several places
fits only while the file is that.
Nobody has to wait for it: whoever releases a file, and every hook, lands what is
due, and so does this command, for what is free already.`,
		Example: `  git diff app/models/user.rb | lockkeeper defer app/models/user.rb
  lockkeeper defer --list`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return exactly(0, "no path with --list")(cmd, args)
			}
			return exactly(1, "one path")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(a *app.App) error {
				q := deferred.Open(a)
				if o.list {
					return p.deferredList(cmd.Context(), q)
				}
				return p.deferPatch(cmd.Context(), a, q, args[0], o)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.whole, "whole", false, "standard input is the whole new content")
	f.StringVar(&o.base, "base", "", "what the file was when the change was made: nothing, the `SHA-256` of its content, or a version")
	f.BoolVar(&o.list, "list", false, "land what is due, and list what waits")
	f.StringVar(&o.session, "session", "", "the `id` of the agent's session that is told (default: as the agent's environment says)")
	return cmd
}

func (p *program) deferPatch(ctx context.Context, a *app.App, q *deferred.Queue, path string, o deferOptions) error {
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
	ended, landing := q.Land(ctx) // which may fail for somebody else's alone
	for _, e := range ended {
		if e.ID == patch.ID {
			patch = e
		}
	}
	if p.json {
		return errors.Join(p.printJSON(patch), landing)
	}
	return errors.Join(p.showPatch(patch), landing)
}

// authorOf finds out whose a patch is, and what they know of its file. Anybody may name a
// session that is told; what it has seen counts only for what was started from its window.
func (p *program) authorOf(ctx context.Context, a *app.App, patch *deferred.Patch, o deferOptions) error {
	named, _ := p.lookup("CLAUDE_CODE_SESSION_ID")
	named = cmp.Or(o.session, named)
	patch.Session = named
	base := o.base
	file, err := a.File(patch.Path)
	if err != nil {
		return err
	}
	for _, s := range p.sessionsAbove(ctx) {
		if named != "" && s.ID != named {
			continue
		}
		patch.Session, patch.By = s.ID, s.Callsign
		if base == "" {
			if base, err = p.book.Known(s, file); err != nil {
				return err
			}
		}
		break
	}
	if base == "" {
		return nil
	}
	known, err := a.ParseBase(file, base)
	if err == nil {
		patch.Base = *known
	}
	return err
}

// landDue lands what was deferred for files that are free by now. Whoever gives locks back
// does so, and has succeeded whatever comes of it.
func (p *program) landDue(ctx context.Context, a *app.App) {
	ended, err := deferred.Open(a).Land(ctx)
	for _, patch := range ended {
		fmt.Fprintln(p.Err, "deferred:", patchLine(patch))
	}
	if err != nil {
		p.say("what was deferred could not land yet: " + err.Error())
	}
}

func (p *program) showPatch(patch deferred.Patch) error {
	_, err := fmt.Fprintln(p.Out, patchLine(patch))
	return err
}

func patchLine(patch deferred.Patch) string {
	text := "waits until the file is free"
	switch patch.State {
	case deferred.Landed:
		text = "has landed"
	case deferred.Rescued:
		text = "could not land: " + clean(patch.Why) + "; it is kept: lockkeeper rescue show " + patch.Rescue
	}
	return fmt.Sprintf("%s  %s  by %s: %s", patch.ID, clean(patch.Path), clean(patch.By), text)
}

func (p *program) deferredList(ctx context.Context, q *deferred.Queue) error {
	_, landing := q.Land(ctx)
	aside, setting := q.SetAside()
	for _, text := range aside {
		p.say(text)
	}
	list, err := q.List()
	if err = errors.Join(err, landing, setting); err != nil {
		return err
	}
	if p.json {
		if list == nil {
			list = []deferred.Patch{}
		}
		return p.printJSON(list)
	}
	for _, patch := range list {
		if err := p.showPatch(patch); err != nil {
			return err
		}
	}
	return nil
}
