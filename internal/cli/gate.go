package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
whatever crashes. What is refused is kept: see lockkeeper rescue.

A command that lock exec runs has no use for it: lock exec keeps the token of its
grant. It edits the files that are locked for it in place, and the lock covers that.`,
		Example: `  grant=$(lockkeeper lock acquire --write app/models/user.rb)
  lockkeeper gate write --grant "$grant" app/models/user.rb <user.rb
  lockkeeper gate apply --grant "$grant" --from out/
  lockkeeper gate changes`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.writeCommand(), p.applyCommand(), p.changesCommand(), p.recoverCommand())
	return cmd
}

// apply lands changes and explains refusals that this environment is the cause of.
func (p *program) apply(cmd *cobra.Command, a *app.App, grant grantID, changes []gate.Change, whole bool) (*app.Applied, error) {
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	done, err := a.Apply(ctx, string(grant), changes, whole)
	if err != nil {
		return nil, interrupted(ctx, errors.Join(err, p.explainGrant(ctx, a, grant, err)))
	}
	for _, o := range done.Files {
		if err := p.explainGrant(ctx, a, grant, o.Refusal); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// explainGrant says why a grant that this very command runs under is no help, its
// token never leaving the supervisor, and that none is needed.
func (p *program) explainGrant(ctx context.Context, a *app.App, grant grantID, refusal error) error {
	under := process.Under(p.Env)
	if len(under) == 0 || grant != "" && !slices.Contains(under, string(grant)) {
		return nil
	}
	for _, v := range violations(refusal) {
		if v.Check != "grant" {
			continue
		}
		held, err := a.Writer(ctx, v.Path)
		if err != nil {
			return err
		}
		v.Reason += "; lock exec keeps the token of its grant"
		next := "take a grant of its own with lockkeeper lock acquire --write PATH, and give its id with --grant"
		if held != nil && slices.Contains(under, held.ID) {
			v.Reason += "; what it runs may edit the file directly, this lock covers it"
			next = "edit " + v.Path + " in place"
		}
		if _, kept, found := strings.Cut(v.Next, "; "); found { // and where the content is
			next += "; " + kept
		}
		v.Next = next
	}
	return nil
}
