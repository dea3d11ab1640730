package agent

import "strings"

// Plain calls any command. The prompt is its standard input, the answer its standard output,
// and exit status 0 means that it is done. If the answer is one text, any output is that text. It has no permissions of its own; the sandbox
// confines it.
type Plain struct {
	Argv []string // the program and its arguments
}

func isPlain(a Adapter) bool {
	_, is := a.(Plain)
	return is
}

func (Plain) Name() string { return "command" }

func (p Plain) command(r *Request, _ Files) (Command, string, error) {
	if err := r.cannot("a command", "model", "session", "cost limit"); err != nil {
		return Command{}, "", err
	}
	argv := append(p.Argv[:len(p.Argv):len(p.Argv)], r.Extra...)
	return Command{Argv: argv, Dir: r.Dir, Env: environment(r.Env, nil)}, r.asked(), nil
}

func (Plain) stream() stream { return &plainStream{} }

type plainStream struct {
	answer strings.Builder
	failed *Error
}

func (s *plainStream) line(b []byte, tell func(Event)) bool {
	if s.answer.Len()+len(b) > maxLine {
		s.skip()
		return true
	}
	s.answer.Write(b)
	s.answer.WriteByte('\n')
	tell(Event{Kind: EventText, Text: string(b)})
	return true
}

func (s *plainStream) skip() {
	s.failed = &Error{Kind: Unfinished, Reason: "its answer is longer than 16 MiB", Next: "see what it prints"}
}

func (s *plainStream) finished(_ []byte, exit *Exit) bool { return exit != nil && exit.ok() }

func (s *plainStream) result(rest []byte) (Result, *Error) {
	return answered(Result{Text: s.answer.String() + string(rest)}), s.failed
}

func (s *plainStream) ended(Exit, string) *Error { return nil }
