package landings

import (
	"errors"

	"github.com/spf13/cobra"

	"lockkeeper/gate"
	"lockkeeper/internal/landing"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

func (p *program) gateCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "gate",
		Short: "Write files under locks",
		Long: `Write files into the codebase under locks. A write needs a live grant that holds the
path for writing, and the path must be in gate.allowed_write_paths of lockkeeper.yaml.
A landing is complete or rolled back, also after a crash. Refused writes are kept: see
lockkeeper rescue.

A command under lock exec does not need the gate. It edits its locked files in place,
and the lock covers that.`,
		Example: `  grant=$(lockkeeper lock acquire --write app/models/user.rb)
  lockkeeper gate write --grant "$grant" app/models/user.rb <user.rb
  lockkeeper gate apply --grant "$grant" --from out/
  lockkeeper gate changes`,
	}, p.writeCommand(), p.applyCommand(), p.replaceDirCommand(), p.changesCommand(), p.pushedCommand(), p.recoverCommand())
}

// apply lands changes, and explains refusals that the environment of this command causes.
func (p *program) apply(cmd *cobra.Command, a *project.Project, grant command.GrantID, changes []gate.Change, whole bool) (*landing.Applied, error) {
	ctx, stop := command.Interruptible(cmd.Context())
	defer stop()
	done, err := landing.Apply(ctx, a, string(grant), changes, whole)
	if err != nil {
		return nil, command.Interrupted(ctx, errors.Join(err, p.ExplainGrant(ctx, a, grant, err)))
	}
	for _, o := range done.Files {
		if err := p.ExplainGrant(ctx, a, grant, o.Refusal); err != nil {
			return nil, err
		}
	}
	return done, nil
}
