package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
)

func (p *program) gateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Write into the codebase under locks",
		Long: `Write into the codebase under locks. Nothing lands without a live grant that
holds exactly this path for writing, and only in the directories that
gate.allowed_write_paths in lockkeeper.yaml lists. What lands, lands whole,
whatever crashes. What is refused is kept: see lockkeeper rescue.`,
		Example: `  grant=$(lockkeeper lock acquire --write app/models/user.rb)
  lockkeeper gate write --grant $grant app/models/user.rb <user.rb
  lockkeeper gate apply --grant $grant --from out/
  lockkeeper gate changes`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.writeCommand(), p.applyCommand(), p.changesCommand(), p.recoverCommand())
	return cmd
}

// apply lands changes and explains refusals that this environment is the cause of.
func (p *program) apply(cmd *cobra.Command, a *app.App, grantID string, changes []gate.Change, whole bool) (*app.Applied, error) {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	done, err := a.Apply(ctx, grantID, changes, whole)
	if err != nil {
		p.explainGrant(grantID, err)
		return nil, interrupted(ctx, err)
	}
	for _, o := range done.Files {
		p.explainGrant(grantID, o.Refusal)
	}
	return done, nil
}

// explainGrant says why a grant that this very command runs under is no help:
// its token never leaves the supervisor.
func (p *program) explainGrant(grantID string, err error) {
	under := process.Under(p.Env)
	if len(under) == 0 || grantID != "" && !slices.Contains(under, grantID) {
		return
	}
	for _, v := range violations(err) {
		if v.Check == "grant" {
			v.Reason += "; lock exec holds the grant that this runs under, and gives its id alone to what it runs"
			v.Next = "take a grant of its own with lockkeeper lock acquire --write PATH, and give its id with --grant"
		}
	}
}

// landed is what became of a file, as JSON.
type landed struct {
	Path    string              `json:"path"`
	Outcome string              `json:"outcome"`           // landed, unchanged or refused
	Version *lockkeeper.Version `json:"version,omitempty"` // what landed
	Refusal map[string]any      `json:"refusal,omitempty"`
}

// showApplied tells what became of each file, and fails when one was refused.
func (p *program) showApplied(done *app.Applied) error {
	number := uint64(0)
	if done.Landing != nil {
		number = done.Landing.Seq
	}
	files := make([]landed, len(done.Files))
	count := map[string]int{}
	for i, o := range done.Files {
		files[i] = landed{Path: o.Path, Outcome: "unchanged"}
		switch {
		case o.Refusal != nil:
			files[i].Outcome, files[i].Refusal = "refused", p.facts(o.Refusal)
		case o.Landed:
			files[i].Outcome, files[i].Version = "landed", &o.Version
		}
		count[files[i].Outcome]++
	}
	if p.json {
		if err := p.printJSON(map[string]any{"landing": number, "files": files}); err != nil {
			return err
		}
	} else {
		for i, f := range files {
			line := fmt.Sprintf("%-9s  %s", f.Outcome, clean(f.Path))
			if why := done.Files[i].Refusal; why != nil {
				what, _, _ := cutLast(why.Error(), nextSep)
				line += ": " + clean(what)
			}
			fmt.Fprintln(p.Out, line)
		}
		p.summary(number, count)
	}
	if count["refused"] > 0 {
		return &codedError{exit: exitViolation}
	}
	return nil
}

// summary is the last line about files that were to land, and the next step.
func (p *program) summary(number uint64, count map[string]int) {
	var parts []string
	for _, outcome := range []string{"landed", "unchanged", "refused"} {
		if n := count[outcome]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, outcome))
		}
	}
	what := "nothing landed"
	if number != 0 {
		what = fmt.Sprintf("landing %d", number)
	}
	fmt.Fprintf(p.Out, "%s: %s\n", what, strings.Join(parts, ", "))
	switch {
	case count["refused"] > 0:
		fmt.Fprintln(p.Out, "next: lockkeeper rescue list")
	case number != 0:
		fmt.Fprintf(p.Out, "next: lockkeeper undo %d takes it back\n", number)
	}
}
