package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/config"
)

// usage is an error in what was typed.
func usage(cmd *cobra.Command, reason string) error {
	return &lockkeeper.InputError{Field: "command", Value: cmd.CommandPath(), Reason: reason, Next: cmd.CommandPath() + " --help"}
}

// subcommand refuses words that are no command of a group, and says which one
// may have been meant, there or in a group below.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := &lockkeeper.InputError{Field: "command", Value: args[0], Reason: "unknown command of " + cmd.CommandPath(), Next: cmd.CommandPath() + " --help"}
	var near []string
	for _, group := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
		group.SuggestionsMinimumDistance = 2
		for _, name := range group.SuggestionsFor(args[0]) {
			near = append(near, group.CommandPath()+" "+name)
		}
		if group == cmd && len(near) > 0 {
			break
		}
	}
	if len(near) > 0 {
		e.Next = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}

// wrongFlag explains a flag that cannot be. A group has hardly any: where a word
// stands before the flag that the group does not take, the word is what is wrong.
func (p *program) wrongFlag(cmd *cobra.Command, err error) error {
	if word := p.firstWord(cmd); word != "" {
		if wrong := cmd.ValidateArgs([]string{word}); wrong != nil {
			return wrong
		}
	}
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	var input *lockkeeper.InputError
	switch {
	case errors.As(err, &input):
		return input
	case errors.As(err, &unknown):
		wrong := usage(cmd, err.Error()).(*lockkeeper.InputError)
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near, ok := config.Nearest(unknown.GetSpecifiedName(), known); ok {
			wrong.Next = "did you mean --" + near + "?"
		}
		return wrong
	case errors.As(err, &invalid) && errors.As(err, &number):
		return usage(cmd, fmt.Sprintf("--%s %q: not a whole number, or too large a one", invalid.GetFlag().Name, invalid.GetValue()))
	}
	return usage(cmd, err.Error())
}

// firstWord is the first word after a group's own name that is no flag and no
// flag's value; empty when the command is no group or an unknown flag is before.
func (p *program) firstWord(cmd *cobra.Command) string {
	if !cmd.HasSubCommands() {
		return ""
	}
	names := strings.Fields(cmd.CommandPath())[1:]
	for i := 0; i < len(p.args); i++ {
		arg := p.args[i]
		name, isFlag := strings.CutPrefix(arg, "--")
		switch {
		case !isFlag && len(names) > 0 && arg == names[0]:
			names = names[1:]
		case !isFlag && !strings.HasPrefix(arg, "-"):
			return arg
		default:
			name, _, whole := strings.Cut(name, "=")
			f := cmd.Root().PersistentFlags().Lookup(name)
			if f == nil {
				return ""
			}
			if !whole && f.NoOptDefVal == "" {
				i++ // its value
			}
		}
	}
	return ""
}

// helpCommand is help as a command, which does not pass over what it does not
// know.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return subcommand(about, rest)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
