package agent

import (
	"slices"
	"strings"

	"lockkeeper"
)

// Adapter knows one agent program: how it is called and what it says.
type Adapter interface {
	// Name is what messages call the agent.
	Name() string

	// command builds the command, without its files, and the text of its standard input.
	command(r *Request, f Files) (c Command, stdin string, err error)

	// stream reads what one call says.
	stream() stream
}

// stream reads the output of one call, line by line.
type stream interface {
	// line takes the next whole line, and reports whether it is of the protocol.
	line(b []byte, tell func(Event)) bool

	// skip says that a line was passed over because it was too long.
	skip()

	// finished reports whether the agent has said its last word. Rest is what came after
	// the last whole line. Exit is nil while it runs, and when its end was not seen.
	finished(rest []byte, exit *Exit) bool

	// result is what was said so far, and the failure that the agent reported, if it did.
	result(rest []byte) (Result, *failure)

	// ended classes an end without a result: by the exit code, and by the last line of the
	// log. Nil: nothing is known.
	ended(exit Exit, said string) *failure
}

// lastWord is whether a protocol with a result at its end has come to it.
type lastWord struct {
	said  bool // there was a result
	final bool // and nothing came after it
}

// finished: a program that ended by itself has said all, also when it was about to say
// more. After a failure it may end with any code.
func (w lastWord) finished(rest []byte, exit *Exit, failed bool) bool {
	return w.said && (w.final && len(rest) == 0 || exit != nil && (exit.ok() || exit.byItself() && failed))
}

// byWords classes an end without a result by what the program said last.
func byWords(exit Exit, said string) *failure {
	if exit.ok() || !exit.byItself() || classOf(0, said) == unknown {
		return nil
	}
	return &failure{text: said}
}

// Names lists the adapters, the default first.
func Names() []string { return []string{"claude", "codex", "gemini", "command"} }

// ByName makes the adapter of a name. Argv is the program and its first arguments;
// empty: the program of the same name, in PATH.
func ByName(name string, argv ...string) (Adapter, error) {
	if name == "" {
		name = Names()[0]
	}
	if !slices.Contains(Names(), name) {
		return nil, &lockkeeper.InputError{Field: "agent", Value: name, Reason: "unknown", Next: "use one of " + strings.Join(Names(), ", ")}
	}
	if len(argv) == 0 {
		argv = []string{name}
	}
	switch name {
	case "codex":
		return Codex{Argv: argv}, nil
	case "gemini":
		return Gemini{Argv: argv}, nil
	case "command":
		if argv[0] == name {
			return nil, &lockkeeper.InputError{Field: "agent", Value: name, Reason: "it names no program", Next: "name it in agent.command of lockkeeper.yaml, such as [my-agent, --flag]"}
		}
		return Plain{Argv: argv}, nil
	default:
		return Claude{Argv: argv}, nil
	}
}
