package agent

import (
	"strings"

	"lockkeeper"
	"lockkeeper/internal/agent/program"
)

// An Adapter calls one agent program and reads its output.
type Adapter interface {
	// Name returns the name of the agent.
	Name() string

	// command returns the command, without its files, and the text of its standard input.
	command(r *Request, f Files) (c Command, stdin string, err error)

	// stream returns a reader for the output of one call.
	stream() stream
}

// A stream reads the output of one call, line by line.
type stream interface {
	// line reads the next complete line, and reports whether it belongs to the protocol.
	line(b []byte, tell func(Event)) bool

	// skip is called for a line that was skipped because it was too long.
	skip()

	// finished reports whether the result is complete. rest is the output after the last
	// complete line. exit is nil if the agent is running or its end was not observed.
	finished(rest []byte, exit *Exit) bool

	// result returns the result so far, and the failure that the agent reported, if any.
	result(rest []byte) (Result, *Error)

	// ended classifies an end without a result by the exit code and the last line of the log. It
	// returns nil if it cannot classify the end.
	ended(exit Exit, said string) *Error
}

// A turnState is the state of a protocol whose turns end with a result.
type turnState struct {
	res    Result // the result so far
	failed *Error // the last failure; nil after a success
	said   bool   // a result was printed
	final  bool   // no output followed the result
}

func (s *turnState) skip() { s.final = false }

// finished reports whether the result is complete. A program that ended by itself prints
// nothing more. After a failure it may end with any code.
func (s *turnState) finished(rest []byte, exit *Exit) bool {
	return s.said && (s.final && len(rest) == 0 || exit != nil && (exit.ok() || exit.byItself() && s.failed != nil))
}

// result returns the result, with its text as the structured answer.
func (s *turnState) result([]byte) (Result, *Error) {
	if !s.said {
		return s.res, nil
	}
	return answered(s.res), s.failed
}

// byWords classifies an end without a result by the last line that the program printed.
func byWords(exit Exit, said string) *Error {
	if exit.ok() || !exit.byItself() || kindOf(0, said) == "" {
		return nil
	}
	return &Error{Reason: said}
}

// adapters makes the adapter of each program from its command line.
var adapters = map[string]func(argv []string) Adapter{
	"claude": func(argv []string) Adapter { return Claude{argv} },
	"codex":  func(argv []string) Adapter { return Codex{argv} },
	"gemini": func(argv []string) Adapter { return Gemini{argv} },
}

// ByName returns the adapter with a name, or the default if the name is empty. argv is the
// program and its first arguments. If argv is empty, the program of the same name in PATH is
// used.
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
