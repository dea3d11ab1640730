package scripted

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// flags are the arguments of Claude Code that the agent knows.
type flags struct {
	print        bool
	verbose      bool
	format       string
	mode         string // the permission mode
	allowed      []string
	model        string
	resume       string
	session      string
	schema       string
	maxTurns     int
	maxBudgetUSD float64
}

func parseFlags(args []string) (*flags, error) {
	f := &flags{format: "text", mode: "default", model: "scripted"}
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		switch name {
		case "-p", "--print":
			f.print = true
			continue
		case "--verbose":
			f.verbose = true
			continue
		case "--dangerously-skip-permissions":
			f.mode = "bypassPermissions"
			continue
		}
		if !joined && len(args) > 0 {
			value, args, joined = args[0], args[1:], true
		}
		if err := f.set(name, value); err != nil {
			return nil, err
		}
		if !joined {
			return nil, fmt.Errorf("error: option '%s' argument missing", name)
		}
	}
	switch {
	case !f.print:
		return nil, errors.New("error: this agent only runs with --print")
	case f.format == "stream-json" && !f.verbose:
		return nil, errors.New("error: when using --print, --output-format=stream-json requires --verbose")
	}
	return f, nil
}

func (f *flags) set(name, value string) (err error) {
	switch name {
	case "--output-format":
		f.format = value
		if !slices.Contains([]string{"text", "json", "stream-json"}, value) {
			err = fmt.Errorf("error: option '--output-format <format>' argument '%s' is invalid", value)
		}
	case "--permission-mode":
		f.mode = value
	case "--allowedTools", "--allowed-tools":
		f.allowed = append(f.allowed, value)
	case "--model":
		f.model = value
	case "--resume", "-r":
		f.resume = value
	case "--session-id":
		f.session = value
	case "--json-schema":
		f.schema = value
	case "--max-turns":
		f.maxTurns, err = strconv.Atoi(value)
	case "--max-budget-usd":
		f.maxBudgetUSD, err = strconv.ParseFloat(value, 64)
	default:
		err = fmt.Errorf("error: unknown option '%s'", name)
	}
	return err
}

// permits reports whether a tool may be used without asking.
func (f *flags) permits(tool string) bool {
	named := slices.ContainsFunc(f.allowed, func(pattern string) bool {
		name, _, _ := strings.Cut(pattern, "(")
		return name == tool
	})
	reads := slices.Contains([]string{"Read", "Glob", "Grep"}, tool)
	edits := slices.Contains([]string{"Write", "Edit", "NotebookEdit"}, tool)
	return named || reads || f.mode == "bypassPermissions" || f.mode == "acceptEdits" && edits
}
