package landings

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type applyOptions struct {
	grant  command.GrantID
	from   string
	remove []string
	whole  bool

	ontoCurrent bool
	verbose     bool
}

func (p *program) applyCommand() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply --grant GRANT --from DIR [--delete PATH]…",
		Short: "Write many files as one landing",
		Long: `Write the files of a directory that mirrors the codebase, and delete others, as one
landing: either all changes are in place or none, at every moment and after any crash.
A new file gets its permissions in the directory. An existing file keeps its permissions;
only its executable bit follows the directory. Unchanged files are skipped, so the
directory can be a copy of the whole codebase. .git and .lockkeeper are ignored, and so
are files that git ignores, virtual environments, and new caches such as node_modules
and __pycache__. A link that differs, or a pipe, is refused.

If another writer changed a file after the grant was acquired, the change is refused.
Merge it into the current content, and land it with --onto-current.

Files that the gate refuses are left out, kept and listed, and the exit code is 5. With
--all-or-nothing one refusal refuses them all.`,
		Example: `  lockkeeper gate apply --grant "$grant" --from out/
  lockkeeper gate apply --grant "$grant" --from ../copy-of-the-codebase
  lockkeeper gate apply --grant "$grant" --from out/ --delete app/models/old.rb --all-or-nothing`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.from == "" && len(o.remove) == 0 {
				return command.Usage(cmd, "needs a directory with --from, or a path with --delete")
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.applyMirror(cmd, a, o) })
		},
	}
	f := cmd.Flags()
	f.Var(&o.grant, "grant", "the `id` of the grant that covers the paths")
	f.StringVar(&o.from, "from", "", "the `directory` with the files to land")
	f.StringArrayVar(&o.remove, "delete", nil, "a `path` to delete; repeatable")
	f.BoolVar(&o.ontoCurrent, "onto-current", false, "replace files as they are now, also if another writer changed them")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "also list unchanged files")
	f.BoolVar(&o.whole, "all-or-nothing", false, "land nothing if any file is refused")
	return cmd
}

func (p *program) applyMirror(cmd *cobra.Command, a *project.Project, o applyOptions) (err error) {
	mirror := &landing.Mirror{}
	if o.from != "" {
		if mirror, err = landing.OpenMirror(a, p.Path(o.from)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, mirror.Close()) }()
	}
	if err := mirror.LeaveIgnored(cmd.Context()); err != nil {
		return err
	}
	changes, err := withDeletions(a, mirror, o.remove)
	if err != nil {
		return err
	}
	if o.ontoCurrent {
		if err := landing.OntoCurrent(a, changes); err != nil {
			return err
		}
	}
	skipped := slices.Concat(mirror.Unchanged, mirror.Refused)
	if len(changes)+len(skipped)+len(mirror.Ignored) == 0 {
		return command.Usage(cmd, "has nothing to do: "+o.from+" has no files")
	}
	done, err := p.applyAll(cmd, a, o, changes, mirror.Refused)
	if err != nil && done == nil {
		return err
	}
	done.Files = append(done.Files, skipped...)
	slices.SortFunc(done.Files, func(a, b landing.Outcome) int { return strings.Compare(a.Path, b.Path) })
	if err != nil {
		return p.showWhole(done, err)
	}
	if n := len(mirror.Ignored); n > 0 && !p.JSON {
		p.Note("%s left out, which git ignores or tools can make again: %s", term.Counted(n, "path"), term.JoinFew(mirror.Ignored, ignoredShown, term.Clean))
	}
	return p.showApplied(done, o.grant, o.verbose)
}

// applyAll lands changes. With --json and --all-or-nothing, an error comes with the outcome of
// each file.
func (p *program) applyAll(cmd *cobra.Command, a *project.Project, o applyOptions, changes []gate.Change, refused []landing.Outcome) (done *landing.Applied, err error) {
	if o.whole && len(refused) > 0 {
		err = refused[0].Refusal
	} else if done, err = p.apply(cmd, a, o.grant, changes, o.whole); err == nil {
		return done, nil
	}
	if !p.JSON || !o.whole {
		return nil, err
	}
	return landing.Withheld(changes, err), err
}

// withDeletions adds the paths to delete to the changes of a mirror. It refuses a path that is
// in both.
func withDeletions(a *project.Project, mirror *landing.Mirror, remove []string) ([]gate.Change, error) {
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
