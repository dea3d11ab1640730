package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/session/refusal"
)

// Process holds the inputs and outputs of one hook process, and its environment.
type Process struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) (string, bool) // as os.LookupEnv
	Store    string                      // overrides the configured store
	Deadline time.Duration               // 0: the constant Deadline

	// Postgres hands a call that concerns a codebase in PostgreSQL to another program, before
	// any codebase is opened. It returns only if the other program cannot be
	// started. If Postgres is nil, this program answers the call itself.
	Postgres func(call []byte) error
}

// Deadline is the total time limit of a hook. Enrolment registers three times as much with
// the hosts. At the end of a session the hosts allow only 1.5 seconds, so endDeadline applies.
const (
	Deadline    = 10 * time.Second
	endDeadline = 1200 * time.Millisecond
)

// Exit codes that the hosts understand.
const (
	exitPass    = 0
	exitTrouble = 1 // the host shows the error to the person and continues
	exitRefuse  = 2 // the host does not make the call and tells the agent why
)

// maxInput limits the size of a call, which may contain a whole file.
const maxInput = 64 << 20

// Run answers one call of a host's hook and returns the exit code.
func Run(ctx context.Context, agent string, w Process) int {
	h, err := hostOf(agent)
	if err != nil {
		return refuse(w, refusal.Unchecked("hook", err))
	}
	limit := cmp.Or(w.Deadline, Deadline)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	input, err := read(ctx, w.In)
	if err != nil {
		return refuse(w, refusal.Unchecked("hook", err))
	}
	c, err := h.decode(input)
	if err != nil {
		return outcome{err: err}.tell(h, c, w)
	}
	if c.Event == End {
		limit = min(limit, endDeadline)
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	done := make(chan outcome, 1)
	go func() { done <- answer(ctx, h, c, input, w) }()
	select {
	case o := <-done:
		return o.tell(h, c, w)
	case <-ctx.Done():
		// A check that hangs in the kernel or on another lock ends with this process.
		return outcome{err: fmt.Errorf("no answer within %s", limit)}.tell(h, c, w)
	}
}

// read reads a call. It does not wait for incomplete input forever, because the host allows the
// call when its own timeout expires.
func read(ctx context.Context, in io.Reader) ([]byte, error) {
	type taken struct {
		input []byte
		err   error
	}
	done := make(chan taken, 1)
	go func() {
		input, err := io.ReadAll(io.LimitReader(in, maxInput+1))
		if err == nil && len(input) > maxInput {
			err = errors.New("the call is larger than 64 MiB")
		}
		done <- taken{input, err}
	}()
	select {
	case t := <-done:
		return t.input, t.err
	case <-ctx.Done():
		return nil, errors.New("the input of the call did not end in time")
	}
}

// outcome is the result of one call.
type outcome struct {
	Answer
	refused []refusal.Refusal
	err     error
	shown   []func() error // functions that record that the agent was shown Model
}

// answer handles a call. A panic refuses the call, like any other failure.
func answer(ctx context.Context, h host, c Call, input []byte, w Process) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{err: fmt.Errorf("internal error: %v", p)}
		}
	}()
	if c.Event == Other {
		return o
	}
	if !filepath.IsAbs(c.Dir) {
		return outcome{err: fmt.Errorf("the call does not say where the agent works: %q", c.Dir)}
	}
	caller, tty, err := process.CallingProgram()
	if err != nil {
		return outcome{err: err}
	}
	k := &check{call: c, input: input, agent: h.name(), proc: w, caller: caller, tty: tty, out: &o}
	o.err = k.run(ctx)
	return o
}

// tell writes the outcome for the host and returns the exit code.
func (o outcome) tell(h host, c Call, w Process) int {
	if c.Event == Before && o.err != nil && len(o.refused) == 0 {
		o.refused = []refusal.Refusal{refusal.Unchecked(subject(c), o.err)}
	}
	if c.Event == Before && len(o.refused) > 0 {
		return o.deny(h, c, w)
	}
	if o.err != nil {
		code := trouble(w, c, o.err)
		if len(o.Model) > 0 {
			fmt.Fprintln(w.Err, "\n"+strings.Join(o.Model, "\n"))
		}
		return code
	}
	text, err := h.encode(c, o.Answer)
	if err != nil {
		return trouble(w, c, err)
	}
	if len(text) == 0 {
		return exitPass
	}
	if _, err := w.Out.Write(append(text, '\n')); err != nil {
		return exitTrouble // the host closed its end; the call itself was allowed
	}
	if c.Event.shows(h) {
		o.wasShown(w)
	}
	return exitPass
}

// wasShown records that the agent was shown the messages. If that fails, it is shown them again.
func (o outcome) wasShown(w Process) {
	for _, record := range o.shown {
		if err := record(); err != nil {
			fmt.Fprintln(w.Err, "lockkeeper: "+err.Error())
		}
	}
}

// deny refuses a call in the host's own form, so that the agent reads the reason and not the
// hook's shell command. If the host cannot be told in that form, the exit code refuses.
func (o outcome) deny(h host, c Call, w Process) int {
	reason := textOf(o.refused)
	if len(o.Model) > 0 {
		reason += "\n\n" + strings.Join(o.Model, "\n")
	}
	text, err := h.deny(c, reason)
	if err == nil {
		_, err = w.Out.Write(append(text, '\n'))
	}
	if err == nil {
		o.wasShown(w)
		return exitPass
	}
	if _, err := fmt.Fprintln(w.Err, reason); err == nil {
		o.wasShown(w)
	}
	return exitRefuse
}

// refuse prints the reasons for the agent and returns the exit code of a refusal. It serves calls
// whose form is unknown.
func refuse(w Process, list ...refusal.Refusal) int {
	fmt.Fprintln(w.Err, textOf(list)) // if the write fails, the exit code still refuses
	return exitRefuse
}

func textOf(list []refusal.Refusal) string {
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = r.String()
	}
	return strings.Join(texts, "\n\n")
}

// trouble answers a call that could not be checked. It refuses a tool call that has not run
// yet, and a call that cannot be parsed. After a tool call it tells the agent that nothing was
// compared. At other events it reports an error, because hosts give a refusal another meaning there.
func trouble(w Process, c Call, err error) int {
	r := refusal.Unchecked(subject(c), err)
	switch c.Event {
	case Before, Other:
		return refuse(w, r)
	case After:
		fmt.Fprintln(w.Err, "lockkeeper: files that others hold could not be compared after this call: "+err.Error())
		return exitRefuse // the call has already run; this code only makes the agent read the message
	}
	fmt.Fprintln(w.Err, "lockkeeper: "+err.Error())
	return exitTrouble
}

// subject returns what a call is about, for messages.
func subject(c Call) string {
	switch {
	case len(c.Writes) > 0:
		return c.Writes[0].File
	case c.Command != "":
		return "command"
	case c.Tool != "":
		return c.Tool
	}
	return cmp.Or(c.Name, "hook")
}

// isRefusal reports whether the request itself caused the error, so that the agent can fix it.
func isRefusal(err error) bool {
	code := lockkeeper.CodeOf(err)
	return code == lockkeeper.CodeInput || code == lockkeeper.CodeOverLock || code == lockkeeper.CodeRefused
}
