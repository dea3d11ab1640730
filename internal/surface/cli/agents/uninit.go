package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/agent/enrol"
	"lockkeeper/internal/git"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/store"
)

type uninitOptions struct {
	yes, documents bool
	export         string
}

// A removal is everything that uninit removes.
type removal struct {
	*project.Footprint
	Hooks     []git.InstalledHook `json:"hooks"`
	Agents    []string            `json:"agents"`
	Documents []string            `json:"documents,omitempty"`
	Presets   []presetDocument    `json:"presets,omitempty"`
	Kept      string              `json:"kept,omitempty"` // where unlanded content was moved

	edits    []*enrol.Enrolment
	resolved int      // resolved changes, which are removed
	stay     []string // documents that are not removed
}

func (p *program) uninitCommand() *cobra.Command {
	var o uninitOptions
	cmd := &cobra.Command{
		Use:   "uninit",
		Short: "Remove Lockkeeper from this codebase",
		Long: `Remove what Lockkeeper made for this codebase: the hooks of agents and of git, the settings
in your home directory, lockkeeper.yaml and .lockkeeper. It shows the list and asks. A git
hook that was there before gets its name back. Your own settings of agents stay if other
codebases of yours use them. Work that landed stays as it is. So do the locks and the queue of
this codebase in a PostgreSQL database, because other machines may use them.

It refuses while work is queued, or while other processes use the codebase. It also refuses while the
rescue shelf has content that did not land; --export moves that content to a new directory
first. --documents also removes the documents of runs, and what init book or init fole wrote
into documents and nobody changed since.

Agents cannot run it.`,
		Example: `  lockkeeper uninit
  lockkeeper uninit --export ../rescued --documents`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.uninit(cmd, o) },
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.documents, "documents", false, "also remove the documents of runs, book and fole")
	cmd.Flags().StringVar(&o.export, "export", "", "move the content that did not land to this new `directory`")
	return cmd
}

func (p *program) uninit(cmd *cobra.Command, o uninitOptions) error {
	ctx := cmd.Context()
	if err := p.NoAgent("uninit"); err != nil {
		return err
	}
	foot, err := project.FootprintOf(p.Settings())
	if err != nil {
		return err
	}
	r := &removal{Footprint: foot, Hooks: []git.InstalledHook{}, Agents: []string{}}
	if isRoot, err := project.IsRoot(p.Settings()); err == nil && isRoot {
		if err := p.mayDismiss(ctx, "uninit", o.yes); err != nil {
			return err
		}
		if err := p.survey(ctx, r, o); err != nil {
			return err
		}
	}
	if err := p.planRemoval(ctx, r); err != nil {
		return err
	}
	p.showRemoval(r)
	if err := p.AgreeUnlessYes(o.yes, "uninit", "Everything above will be removed. (--yes does not ask.)"); err != nil {
		return err
	}
	return p.remove(cmd, r, o)
}

// survey refuses to remove a codebase with work that did not land, and lists its documents.
func (p *program) survey(ctx context.Context, r *removal, o uninitOptions) error {
	return p.With(ctx, func(a *project.Project) error {
		for _, status := range []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemDispatched} {
			var open []*lockkeeper.Item
			if err := a.Store.View(ctx, func(tx store.Reader) (err error) {
				open, err = tx.Items(store.ItemQuery{Status: status, Limit: 1})
				return err
			}); err != nil {
				return err
			}
			if len(open) > 0 {
				return &lockkeeper.RefusedError{Act: "uninit", Reason: "work is queued here: " + open[0].ID, Next: "lockkeeper status; finish it or cancel it, then repeat the command"}
			}
		}
		kept, err := view.New(a).Rescue(ctx)
		if err != nil {
			return err
		}
		if kept.Err != nil {
			return kept.Err
		}
		open, resolved := kept.Unresolved()
		if o.export != "" {
			if _, err := os.Lstat(o.export); !errors.Is(err, os.ErrNotExist) {
				return &lockkeeper.InputError{Field: "export", Value: o.export, Reason: "it exists", Next: "name a new directory"}
			}
		} else if r.resolved = resolved; len(open.Entries) > 0 {
			return &lockkeeper.RefusedError{Act: "uninit", Reason: fmt.Sprintf("%s did not land, such as %s", term.Counted(len(open.Entries), "kept change"), open.Entries[0].Path),
				Next: "lockkeeper uninit --export DIRECTORY keeps them; or lockkeeper rescue, and land or drop them"}
		}
		documents := &r.stay
		if o.documents {
			documents = &r.Documents
			r.Presets, err = presetDocuments(a)
		}
		for _, dir := range a.Config.DocumentDirs() {
			if _, err := os.Lstat(a.Below(dir)); err == nil {
				*documents = append(*documents, a.Below(dir))
			}
		}
		return err
	})
}

// planRemoval finds the hooks of git and the settings of agents.
func (p *program) planRemoval(ctx context.Context, r *removal) error {
	found, err := git.Hooks(ctx, git.NewWorkTree(r.Root, r.Root, p.Env))
	if err != nil {
		return err
	}
	r.Hooks = append(r.Hooks, found...)
	others, err := r.OtherRoots()
	if err != nil {
		return err
	}
	site := enrol.At(r.Root, p.Lookup)
	for _, h := range enrol.Hosts() {
		plan, err := site.Undo(h, !others)
		if err != nil {
			return err
		}
		if len(plan.Edits) > 0 {
			r.edits, r.Agents = append(r.edits, plan), append(r.Agents, h.Name)
		}
	}
	return nil
}

func (p *program) showRemoval(r *removal) {
	if p.JSON {
		return
	}
	for _, path := range append(append([]string{}, r.Paths...), r.Documents...) {
		fmt.Fprintf(p.Out, "remove   %s\n", term.Clean(path))
	}
	if r.resolved > 0 {
		fmt.Fprintf(p.Out, "remove   %s that a person dismissed or that landed later\n", term.Counted(r.resolved, "kept change"))
	}
	for _, d := range r.Presets {
		fmt.Fprintf(p.Out, "%-8s %s\n", d.Act, term.Clean(d.Path+d.facts()))
	}
	if config.IsPostgres(r.Store) {
		fmt.Fprintf(p.Out, "keep     the locks and the queue of space %s in %s: other machines may use them\n", r.Space, term.Clean(r.Store))
	}
	for _, path := range r.stay {
		fmt.Fprintf(p.Out, "keep     %s, documents of runs; --documents removes them\n", term.Clean(path))
	}
	for _, h := range r.Hooks {
		fmt.Fprintf(p.Out, "git hook %s: %s\n", term.Clean(h.Path), h.What)
	}
	for _, plan := range r.edits {
		for _, e := range plan.Edits {
			fmt.Fprintf(p.Out, "%-8s %s: remove the entries of Lockkeeper\n", plan.Host.Name, term.Clean(e.Path))
		}
	}
}

func (p *program) remove(cmd *cobra.Command, r *removal, o uninitOptions) error {
	ctx := cmd.Context()
	for _, h := range r.Hooks {
		if err := h.Remove(ctx); err != nil {
			return err
		}
	}
	for _, plan := range r.edits {
		if err := plan.Apply(ctx); err != nil {
			return err
		}
	}
	if o.export != "" {
		err := os.Rename(filepath.Join(r.Root, project.DirName, "rescue"), o.export)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return &lockkeeper.InputError{Field: "export", Value: o.export, Reason: err.Error(), Next: "name a new directory on the same disk"}
		}
		r.Kept = o.export
	}
	if err := r.Remove(ctx); err != nil {
		return err
	}
	for _, d := range r.Presets {
		if err := d.carryOut(ctx, r.Root); err != nil {
			return err
		}
	}
	for _, dir := range r.Documents {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return p.Answer(r, "Lockkeeper is removed from %s", term.Clean(r.Root))
}
