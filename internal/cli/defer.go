package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
	"lockkeeper/internal/deferred"
	"lockkeeper/internal/process"
)

type deferOptions struct {
	whole, list bool
	session     string
}

func (p *program) deferCommand() *cobra.Command {
	var o deferOptions
	cmd := &cobra.Command{
		Use:   "defer PATH <PATCH",
		Short: "Have a patch land when its file is free",
		Long: `Queue a change of a file that somebody else holds: a unified diff of that one file
from standard input, or with --whole its new content. It lands through the gate
once the file is free, if it still fits; otherwise it goes to the rescue shelf.
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
				return p.deferPatch(cmd.Context(), q, args[0], o)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.whole, "whole", false, "standard input is the whole new content")
	f.BoolVar(&o.list, "list", false, "land what is due, and list what waits")
	f.StringVar(&o.session, "session", "", "the `id` of the agent's session that is told (default: as the agent's environment says)")
	return cmd
}

func (p *program) deferPatch(ctx context.Context, q *deferred.Queue, path string, o deferOptions) error {
	text, err := io.ReadAll(io.LimitReader(p.In, deferred.MaxSize+1))
	if err != nil {
		return err
	}
	by, err := process.Holder()
	if err != nil {
		return err
	}
	agents, _ := p.lookup("CLAUDE_CODE_SESSION_ID")
	patch, err := q.Put(ctx, deferred.Patch{Path: path, By: by, Session: cmp.Or(o.session, agents)}, text, o.whole)
	if err != nil {
		return err
	}
	ended, err := q.Land(ctx)
	if err != nil {
		return err
	}
	for _, e := range ended {
		if e.ID == patch.ID {
			patch = e
		}
	}
	if p.json {
		return p.printJSON(patch)
	}
	return p.showPatch(patch)
}

func (p *program) showPatch(patch deferred.Patch) error {
	text := "waits until the file is free"
	switch patch.State {
	case deferred.Landed:
		text = "has landed"
	case deferred.Rescued:
		text = "could not land: " + clean(patch.Why) + "; it is kept: lockkeeper rescue show " + patch.Rescue
	}
	_, err := fmt.Fprintf(p.Out, "%s  %s  by %s: %s\n", patch.ID, clean(patch.Path), clean(patch.By), text)
	return err
}

func (p *program) deferredList(ctx context.Context, q *deferred.Queue) error {
	if _, err := q.Land(ctx); err != nil {
		return err
	}
	list, err := q.List()
	if err != nil {
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
