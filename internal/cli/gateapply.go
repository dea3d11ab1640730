package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/app"
)

type applyOptions struct {
	grant  grantID
	from   string
	remove []string
	whole  bool
}

func (p *program) applyCommand() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply --grant GRANT --from DIR [--delete PATH]…",
		Short: "Write many files as one unit",
		Long: `Write the files of a directory that mirrors the codebase, and delete others, as
one unit: whoever looks, and whatever crashes, all of them are new or none. A
new file gets the permissions it has in the directory; one that is there keeps
its own, except that it becomes executable, or not, as in the directory. What is
in the codebase just so is unchanged, whatever it is, and needs no lock: the
directory may be a copy of all of it. .git and .lockkeeper in it are passed over;
a link that differs, or a pipe, is refused.

What the gate refuses is left out, kept, and told for each file; then the exit
code is 5. With --all-or-nothing one refusal refuses them all.`,
		Example: `  lockkeeper gate apply --grant "$grant" --from out/
  lockkeeper gate apply --grant "$grant" --from ../copy-of-the-codebase
  lockkeeper gate apply --grant "$grant" --from out/ --delete app/models/old.rb --all-or-nothing`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.from == "" && len(o.remove) == 0 {
				return usage(cmd, "needs a directory with --from, or a path with --delete")
			}
			return p.with(cmd.Context(), func(a *app.App) error { return p.applyMirror(cmd, a, o) })
		},
	}
	f := cmd.Flags()
	f.Var(&o.grant, "grant", "the `id` of the grant that covers the paths")
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
	changes, err := withDeletions(a, mirror, o.remove)
	if err != nil {
		return err
	}
	beside := slices.Concat(mirror.Unchanged, mirror.Refused)
	if len(changes)+len(beside) == 0 {
		return usage(cmd, "has nothing to do: "+o.from+" holds no files")
	}
	done, err := p.applyAll(cmd, a, o, changes, mirror.Refused)
	if err != nil && done == nil {
		return err
	}
	done.Files = append(done.Files, beside...)
	slices.SortFunc(done.Files, func(a, b app.Outcome) int { return strings.Compare(a.Path, b.Path) })
	if err != nil {
		return p.showWhole(done, err)
	}
	return p.showApplied(done, o.grant)
}

// applyAll lands changes. With an error come their outcomes where a program gets
// them as well.
func (p *program) applyAll(cmd *cobra.Command, a *app.App, o applyOptions, changes []gate.Change, refused []app.Outcome) (done *app.Applied, err error) {
	if o.whole && len(refused) > 0 {
		err = refused[0].Refusal
	} else if done, err = p.apply(cmd, a, o.grant, changes, o.whole); err == nil {
		return done, nil
	}
	if !p.json || !o.whole {
		return nil, err
	}
	return app.Withheld(changes, err), err
}

// withDeletions adds paths to delete to what a mirror changes. One that is in both
// is a contradiction, whichever was meant.
func withDeletions(a *app.App, mirror *app.Mirror, remove []string) ([]gate.Change, error) {
	changes := mirror.Changes
	named := map[string]string{}
	for _, c := range changes {
		named[c.Path] = "also a file of --from"
	}
	for _, o := range slices.Concat(mirror.Unchanged, mirror.Refused) {
		named[o.Path] = "also a file of --from"
	}
	for _, path := range remove {
		target, err := a.File(path)
		if err != nil {
			return nil, err
		}
		if how := named[target]; how != "" {
			return nil, &lockkeeper.InputError{Field: "path of --delete", Value: path, Reason: how, Next: "name each file once"}
		}
		named[target] = "named twice"
		changes = append(changes, gate.Delete(target))
	}
	return changes, nil
}
