package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/gate"
	"lockkeeper/internal/app"
)

type applyOptions struct {
	grant, from string
	remove      []string
	whole       bool
}

func (p *program) applyCommand() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply --grant GRANT --from DIR [--delete PATH]…",
		Short: "Write many files as one unit",
		Long: `Write the files of a directory that mirrors the codebase, and delete others, as
one unit: whoever looks, and whatever crashes, all of them are new or none. A
new file gets the permissions it has in the directory; one that is there keeps
its own, except that it becomes executable, or not, as in the directory. .git
and .lockkeeper in it are passed over; a link or a pipe in it is refused.

What the gate refuses is left out, kept, and told for each file; then the exit
code is 5. With --all-or-nothing one refusal refuses them all.`,
		Example: `  lockkeeper gate apply --grant $grant --from out/
  lockkeeper gate apply --grant $grant --from out/ --delete app/models/old.rb --all-or-nothing`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.from == "" && len(o.remove) == 0 {
				return usage(cmd, "needs a directory with --from, or a path with --delete")
			}
			return p.with(cmd.Context(), func(a *app.App) error { return p.applyMirror(cmd, a, o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.grant, "grant", "", "the `id` of the grant that covers the paths")
	f.StringVar(&o.from, "from", "", "the `directory` whose files are to land")
	f.StringArrayVar(&o.remove, "delete", nil, "a `path` to delete; repeatable")
	f.BoolVar(&o.whole, "all-or-nothing", false, "land nothing when anything is refused")
	return cmd
}

func (p *program) applyMirror(cmd *cobra.Command, a *app.App, o applyOptions) (err error) {
	mirror := &app.Mirror{}
	if o.from != "" {
		from := o.from
		if !filepath.IsAbs(from) {
			from = filepath.Join(p.base(), from)
		}
		if mirror, err = a.OpenMirror(from); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, mirror.Close()) }()
	}
	changes := mirror.Changes
	for _, path := range o.remove {
		target, err := a.File(path)
		if err != nil {
			return err
		}
		changes = append(changes, gate.Delete(target))
	}
	if len(changes)+len(mirror.Refused) == 0 {
		return usage(cmd, "has nothing to do: "+o.from+" holds no files")
	}
	if o.whole && len(mirror.Refused) > 0 {
		return mirror.Refused[0].Refusal
	}
	done, err := p.apply(cmd, a, o.grant, changes, o.whole)
	if err != nil {
		return err
	}
	done.Files = append(done.Files, mirror.Refused...)
	slices.SortFunc(done.Files, func(a, b app.Outcome) int { return strings.Compare(a.Path, b.Path) })
	return p.showApplied(done)
}
