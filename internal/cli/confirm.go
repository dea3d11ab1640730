package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"lockkeeper"
)

// mayForce refuses acts that need a person: without a terminal to answer on,
// and inside an agent's environment.
func (p *program) mayForce(act string) error {
	if err := p.noAgent(act); err != nil {
		return err
	}
	if !p.attended() {
		return &lockkeeper.RefusedError{Act: act, Reason: "it needs a typed answer and this is not a terminal", Next: "run it in a terminal"}
	}
	return nil
}

// noAgent refuses an act inside an agent's environment.
func (p *program) noAgent(act string) error {
	agent, inside := p.agent()
	if !inside {
		return nil
	}
	return &lockkeeper.RefusedError{Act: act, Reason: "this runs inside an agent's environment (" + agent + "), and only a person may do it",
		Next: "ask a person to run it in a terminal of their own"}
}

// confirm shows facts and has a person type an answer.
func (p *program) confirm(act, facts, answer string) error {
	if err := p.mayForce(act); err != nil {
		return err
	}
	fmt.Fprintf(p.Err, "%s\nType %q to go on, anything else to leave it: ", facts, clean(answer))
	line, err := bufio.NewReader(p.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if strings.TrimSpace(line) != answer {
		return &lockkeeper.RefusedError{Act: act, Reason: "not confirmed; nothing changed"}
	}
	return nil
}

// confirmUnlessYes is confirm for a command that does not ask with --yes.
func (p *program) confirmUnlessYes(yes bool, act, facts, answer string) error {
	if yes {
		return nil
	}
	err := p.confirm(act, facts, answer)
	var refused *lockkeeper.RefusedError
	if errors.As(err, &refused) && !isTerminal(p.In) {
		refused.Next += ", or with --yes"
	}
	return err
}
