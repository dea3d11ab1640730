package jobs

import (
	"context"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

// program is one call of the program. The commands of this package are its methods.
type program struct{ *command.Program }

// Commands returns the commands of this package.
func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.jobCommand()}
}

// ItemNamed returns the item that a name given to why means, or nil if it means
// something else. A holder and an existing path take precedence over an item's name.
func ItemNamed(ctx context.Context, p *command.Program, a *project.Project, q *job.Queue, name string) (*lockkeeper.Item, error) {
	return (&program{p}).itemNamed(ctx, a, q, name)
}

// WhyItem shows why an item is in its state.
func WhyItem(ctx context.Context, p *command.Program, a *project.Project, q *job.Queue, id string) error {
	return (&program{p}).whyItem(ctx, a, q, id)
}
