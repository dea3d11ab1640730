package detect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lockkeeper/internal/agent/program"
)

// File returns the text of the proposed configuration file.
func (f *Found) File() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Configuration of Lockkeeper. lockkeeper init found: %s.", clean(f.Summary()))
	line("# lockkeeper config shows all settings, and lockkeeper doctor tests what they enforce here.")
	line("")
	line("# Whose defaults apply: plain or rails.")
	line("layout: %s", f.Layout)
	line("")
	line("gate:")
	line("  # What agents may change. \".\" is everything.")
	var writes []string
	for _, name := range f.Writes {
		if needsQuotes(name) {
			name = quote(name)
		}
		writes = append(writes, name)
	}
	line("  allowed_write_paths: [%s]", strings.Join(writes, ", "))
	line("")
	line("run:")
	switch {
	case f.PerFile != "":
		line("  # These commands test a change before it lands: one test file, or all tests.")
		line("  test_command: %s", quote(f.PerFile))
		line("  suite_command: %s", quote(f.Test))
	case f.Test != "":
		line("  # This command tests each change before it lands.")
		line("  test_command: %s", quote(f.Test))
	default:
		line("  # This command would test each change before it lands. No tests were found that can run here.")
		line("  #test_command: make test")
	}
	switch {
	case len(f.Checks) > 0:
		line("  # Each change must pass these commands, too.")
		line("  ci:")
	case len(f.Offered) > 0:
		line("  # Each change could have to pass these commands, too.")
		line("  #ci:")
	}
	for _, c := range f.Checks {
		line("    - %s", quote(c))
	}
	for _, c := range f.Offered {
		line("    #- %s", quote(c))
	}
	if len(f.Agent) > 1 {
		line("  # off: no second call compares a change with the original. on needs an agent that answers with JSON.")
		line("  verify: off")
	}
	for _, note := range f.Notes {
		line("# %s", clean(note))
	}
	f.agentLines(line)
	return b.String()
}

func (f *Found) agentLines(line func(string, ...any)) {
	line("")
	if len(f.Agent) == 0 {
		line("# The agent of runs: %s, or command, which is any other program.", strings.Join(program.Names()[:len(program.Names())-1], ", "))
		line("#agent:")
		line("  #name: claude")
		return
	}
	line("agent:")
	line("  # The agent of runs: %s.", strings.Join(program.Names(), ", "))
	line("  name: %s", f.Agent[0])
	if len(f.Agent) > 1 {
		line("  # It reads its prompt from standard input.")
		line("  command:")
		for _, word := range f.Agent[1:] {
			line("    - %s", quote(word))
		}
	}
}

// plainWord matches values that need no quotes in YAML, unless they are words with a meaning.
var plainWord = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.-]*|\.)$`)

func needsQuotes(value string) bool {
	return !plainWord.MatchString(value) || slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(value))
}

// Summary names what was found, for people.
func (f *Found) Summary() string {
	parts := slices.Clone(f.Stacks)
	if len(parts) == 0 {
		parts = []string{"no language or framework that it knows"}
	}
	add(&parts, f.Managers...)
	add(&parts, f.Hooks...)
	return strings.Join(parts, ", ")
}

// quote returns a text as a value of a configuration file.
func quote(text string) string {
	return "'" + strings.ReplaceAll(clean(text), "'", "''") + "'"
}

// clean replaces the characters that would end a line.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
}
