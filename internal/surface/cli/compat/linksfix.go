package compat

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/compat/links"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// fixLinks checks, proposes rewrites, and lands them if a person agrees: all or nothing.
func (p *program) fixLinks(cmd *cobra.Command, a *project.Project, o linksOptions, named []string) error {
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
	if !p.JSON {
		p.listLinks(rep, o)
		fmt.Fprintln(p.Out, linksSummary(rep))
		for _, f := range answer.Fixes {
			fmt.Fprintf(p.Out, "proposed: %s: %s → %s\n", position(f.Reference), term.Clean(f.Target), term.Clean(f.New))
		}
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
	if p.JSON {
		if err := p.PrintJSON(answer); err != nil {
			return err
		}
	} else if agreed {
		fmt.Fprintf(p.Out, "landing %d: %s in %s rewritten, %d broken left\n", answer.Landing, term.Counted(len(answer.Fixes), "link"), term.Counted(len(rewrites), "document"), left)
		p.Advise(command.UndoStep(answer.Landing, o.Grant))
	}
	return linksEnding(left)
}

// agreeToFix asks a person on a terminal. Without a terminal it needs --yes.
func (p *program) agreeToFix(o linksOptions, fixes, documents int) (bool, error) {
	const act = "rewriting links"
	switch {
	case fixes == 0:
		return false, nil
	case o.yes:
		return true, nil
	case p.JSON || p.MayForce(act) != nil:
		if !p.JSON {
			p.Advise("lockkeeper links --fix --yes, with the same options, rewrites them")
		}
		return false, nil
	}
	facts := fmt.Sprintf("This rewrites %s in %s through the gate; lockkeeper undo can undo it.", term.Counted(fixes, "link"), term.Counted(documents, "document"))
	return true, p.Agree(act, facts)
}

// landFixes lands the rewritten documents as one landing, each on the version it was made from.
func (p *program) landFixes(cmd *cobra.Command, a *project.Project, o linksOptions, rewrites []links.Rewrite) (landing *lockkeeper.Landing, err error) {
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
	err = p.Under(cmd, a, "rewrite links to moved files", o.OwnLock, paths, func(ctx context.Context, grant *lockkeeper.Grant) (err error) {
		landing, err = g.Commit(ctx, grant, changes)
		return err
	})
	return landing, err
}
