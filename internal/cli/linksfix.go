package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/app"
	"lockkeeper/internal/links"
)

// fixLinks checks, proposes, and lands what was agreed to: all of it or nothing.
func (p *program) fixLinks(cmd *cobra.Command, a *app.App, o linksOptions, named []string) error {
	rep, err := p.checkLinks(cmd.Context(), a.Root.Dir(), a.Config, o, named)
	if err != nil {
		return err
	}
	rewrites, err := links.Rewrites(cmd.Context(), a.Root.Dir(), rep.Fixes())
	if err != nil {
		return err
	}
	answer := answerOf(rep)
	for _, r := range rewrites {
		answer.Fixes = append(answer.Fixes, r.Fixes...)
	}
	if !p.json {
		p.listLinks(rep, o)
		fmt.Fprintln(p.Out, linksSummary(rep))
		p.proposeFixes(answer.Fixes)
	}
	agreed, err := p.agreeToFix(o, len(answer.Fixes), len(rewrites))
	if err != nil {
		return err
	}
	left := len(rep.Findings)
	if agreed {
		landing, err := p.landFixes(cmd, a, o, rewrites)
		if err != nil {
			return err
		}
		answer.Landing = landing.Seq
		left -= len(answer.Fixes)
	}
	if p.json {
		if err := p.printJSON(answer); err != nil {
			return err
		}
	} else if agreed {
		fmt.Fprintf(p.Out, "landing %d: %s in %s rewritten, %d broken left\n", answer.Landing, counted(len(answer.Fixes), "link"), counted(len(rewrites), "document"), left)
		p.advise(undoStep(answer.Landing, o.grant))
	}
	return linksEnding(left)
}

// proposeFixes lists what would be rewritten.
func (p *program) proposeFixes(fixes []links.Fix) {
	for _, f := range fixes {
		fmt.Fprintf(p.Out, "proposed: %s: %s → %s\n", place(f.Reference), clean(f.Target), clean(f.New))
	}
}

// agreeToFix asks a person, where there is one. Without, it needs --yes.
func (p *program) agreeToFix(o linksOptions, fixes, documents int) (bool, error) {
	const act = "rewriting links"
	switch {
	case fixes == 0:
		return false, nil
	case o.yes:
		return true, nil
	case p.json || p.mayForce(act) != nil:
		if !p.json {
			p.advise("lockkeeper links --fix --yes, with the same options, rewrites them")
		}
		return false, nil
	}
	facts := fmt.Sprintf("%s in %s would be rewritten, through the gate; undo takes it back.", counted(fixes, "link"), counted(documents, "document"))
	return true, p.confirm(act, facts, "fix")
}

// landFixes lands rewritten documents as one unit, each onto what it was made from.
func (p *program) landFixes(cmd *cobra.Command, a *app.App, o linksOptions, rewrites []links.Rewrite) (landing *lockkeeper.Landing, err error) {
	var changes []gate.Change
	var paths []string
	for _, r := range rewrites {
		at, err := a.Root.Resolve("", r.Path, lockkeeper.Write)
		if err != nil {
			return nil, err
		}
		change := gate.Put(at.Path, r.Content)
		change.Base = &r.Base
		changes, paths = append(changes, change), append(paths, at.Path)
	}
	g, err := a.Gate()
	if err != nil {
		return nil, err
	}
	err = p.under(cmd, a, "rewrite links to files that have moved", o.ownLock, paths, func(ctx context.Context, grant *lockkeeper.Grant) (err error) {
		landing, err = g.Commit(ctx, grant, changes)
		return err
	})
	return landing, err
}
