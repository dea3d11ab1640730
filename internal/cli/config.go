package cli

import (
	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
)

func (p *program) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Every configured value, and where it came from",
		Long: `Show every value in force and where it came from: the built-in default, a line
of lockkeeper.yaml, an environment variable or a flag, the later winning; and what
it may be. Passwords are hidden.`,
		Example: `  lockkeeper config
  LOCK_TIMEOUT=60 lockkeeper config --json`,
		Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			c, err := app.LoadConfig(p.settings())
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(c.Values())
			}
			t := &table{heads: []string{"KEY", "VALUE", "FROM", "MAY BE"}, wide: 1}
			for _, v := range c.Values() {
				t.add(v.Key, clean(v.Value), clean(v.Source), v.Allowed)
			}
			t.print(p.Out, p.painter(p.Out))
			return nil
		},
	}
}
