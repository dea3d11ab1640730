package agent

import (
	"strings"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
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

// adapters makes the adapter of each program from its command line.
var adapters = map[string]func(argv []string) Adapter{
	"claude": func(argv []string) Adapter { return Claude{argv} },
	"codex":  func(argv []string) Adapter { return Codex{argv} },
	"gemini": func(argv []string) Adapter { return Gemini{argv} },
}

// ByName returns the adapter of a name, or the default if it is empty. argv is the program and
// its first arguments; if there is none, the program of the same name in PATH is used.
func ByName(name string, argv ...string) (Adapter, error) {
	if name == "" {
		name = program.Names()[0]
	}
	if name == program.Any {
		if len(argv) == 0 {
			return nil, &lockkeeper.InputError{Field: "agent", Value: name, Reason: "no program configured", Next: "name it in agent.command of lockkeeper.yaml, such as [my-agent, --flag]"}
		}
		return Plain{argv}, nil
	}
	make, known := adapters[name]
	if !known {
		return nil, &lockkeeper.InputError{Field: "agent", Value: name, Reason: "unknown", Next: "use one of " + strings.Join(program.Names(), ", ")}
	}
	return make(argv), nil
}
