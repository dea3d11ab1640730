package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockkeeper"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/term"
)

// Usage returns an error about the command line.
func Usage(cmd *cobra.Command, reason string) error {
	return &lockkeeper.InputError{Field: "command", Value: cmd.CommandPath(), Reason: reason, Next: cmd.CommandPath() + " --help"}
}

// Subcommand refuses unknown commands of a group and suggests similar ones, there or in a
// group below.
func Subcommand(cmd *cobra.Command, args []string) error {
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

// WrongFlag explains an invalid flag. If an unknown command precedes the flag, it reports
// the command instead.
func (p *Program) WrongFlag(cmd *cobra.Command, err error) error {
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
		wrong := Usage(cmd, err.Error()).(*lockkeeper.InputError)
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near, ok := config.Nearest(unknown.GetSpecifiedName(), known); ok {
			wrong.Next = "did you mean --" + near + "?"
		}
		return wrong
	case errors.As(err, &invalid) && errors.As(err, &number):
		return Usage(cmd, fmt.Sprintf("--%s %q: not a whole number, or too large", invalid.GetFlag().Name, invalid.GetValue()))
	}
	return Usage(cmd, err.Error())
}

// firstWord returns the first word after a group's name that is not a flag or its value. It
// returns "" if the command is not a group, or an unknown flag comes first.
func (p *Program) firstWord(cmd *cobra.Command) string {
	if !cmd.HasSubCommands() {
		return ""
	}
	names := strings.Fields(cmd.CommandPath())[1:]
	for i := 0; i < len(p.Args); i++ {
		arg := p.Args[i]
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
				i++ // skips the value of the flag
			}
		}
	}
	return ""
}

// Group makes cmd a group of commands. Without one of them it prints its help.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = Subcommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// RequireReason returns an error if --reason is empty.
func RequireReason(reason string) error {
	if strings.TrimSpace(reason) != "" {
		return nil
	}
	return &lockkeeper.InputError{Field: "reason", Value: reason, Reason: "--reason is required", Next: "give --reason WHY, for the audit trail"}
}

// NotNegative returns an error if the value of a limit is negative.
func NotNegative(limit int) error {
	if limit >= 0 {
		return nil
	}
	return &lockkeeper.InputError{Field: "limit", Value: strconv.Itoa(limit), Reason: "negative", Next: "give 0 for no limit"}
}

// OneOf returns an error if value is not one of known, with the nearest known value.
func OneOf(field, value string, known []string) error {
	next := "one of " + strings.Join(known, ", ")
	if slices.Contains(known, value) {
		return nil
	}
	if near, ok := config.Nearest(value, known); ok {
		next = "did you mean " + near + "? It is " + next
	}
	return &lockkeeper.InputError{Field: field, Value: value, Reason: "unknown " + field, Next: next}
}

// Exactly accepts n arguments. what describes them.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return Usage(cmd, fmt.Sprintf("needs %s, got %s", what, term.Counted(len(args), "argument")))
	}
}

// AtLeast accepts n or more arguments. what describes them.
func AtLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return Usage(cmd, fmt.Sprintf("needs %s, got %d arguments", what, len(args)))
	}
}

// AfterDashes accepts a command to run, which must follow --.
func (p *Program) AfterDashes(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return Usage(cmd, "needs a command to run, after --")
	case cmd.ArgsLenAtDash() != 0:
		words, rest := args, []string(nil)
		if i := slices.Index(args, "--"); i >= 0 {
			words, rest = args[:i], args[i+1:]
		}
		if err := p.expanded(words, rest); err != nil {
			return err
		}
		own := p.Args[:len(p.Args)-len(args)]
		return &lockkeeper.InputError{Field: "command", Value: args[0], Reason: "not preceded by --, so flags of lockkeeper and of the command cannot be told apart",
			Next: shellword.Join(slices.Concat([]string{"lockkeeper"}, own, []string{"--"}, args))}
	}
	return nil
}

// SplitPart splits the name of a part of a unit, such as blog/posts/b1, at its last slash.
func SplitPart(name string) (unit, in string, err error) {
	at := strings.LastIndexByte(name, '/')
	if at < 1 || at == len(name)-1 {
		return "", "", &lockkeeper.InputError{Field: "name", Value: name, Reason: "not of the form UNIT/PART", Next: "write it like blog/posts/b1"}
	}
	return name[:at], name[at+1:], nil
}
