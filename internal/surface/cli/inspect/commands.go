package inspect

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// program is one call of the program. The commands of this package are its methods.
type program struct{ *command.Program }

// Commands returns the commands of this package.
func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.statusCommand(), p.whyCommand(), p.auditCommand(), p.configCommand(), p.doctorCommand()}
}

func (p *program) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show every setting and where it comes from",
		Long: `Show every setting, its source and its allowed values. The sources, in rising precedence,
are the default, a line of lockkeeper.yaml, an environment variable and a flag.
Passwords are hidden.`,
		Example: `  lockkeeper config
  LOCK_TIMEOUT=60 lockkeeper config --json`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			c, err := project.LoadConfig(p.Settings())
			if err != nil {
				return err
			}
			if p.JSON {
				return p.PrintJSON(c.Values())
			}
			t := &term.Table{Heads: []string{"KEY", "VALUE", "FROM", "ALLOWED"}, Wide: 1}
			for _, v := range c.Values() {
				t.Add(v.Key, term.Clean(v.Value), term.Clean(v.Source), v.Allowed)
			}
			t.Print(p.Out, p.Painter(p.Out))
			return nil
		},
	}
}
