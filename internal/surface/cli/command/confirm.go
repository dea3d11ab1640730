package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/surface/cli/term"
)

// MayForce refuses an act that needs a person if there is no terminal, or inside an
// agent's environment.
func (p *Program) MayForce(act string) error {
	if err := p.NoAgent(act); err != nil {
		return err
	}
	if !p.Attended() {
		return &lockkeeper.RefusedError{Act: act, Reason: "it needs a typed answer and this is not a terminal", Next: "run it in a terminal"}
	}
	return nil
}

// NoAgent refuses an act inside an agent's environment.
func (p *Program) NoAgent(act string) error {
	agent, inside := p.Agent()
	if !inside {
		return nil
	}
	return &lockkeeper.RefusedError{Act: act, Reason: "this runs inside an agent's environment (" + agent + "), and only a person may do it",
		Next: "ask a person to run it in a terminal of their own"}
}

// Confirm shows facts and asks a person to type the answer.
func (p *Program) Confirm(act, facts, answer string) error {
	if err := p.MayForce(act); err != nil {
		return err
	}
	fmt.Fprintf(p.Err, "%s\nType %q to continue, anything else to cancel: ", facts, term.Clean(answer))
	line, err := bufio.NewReader(p.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if strings.TrimSpace(line) != answer {
		return &lockkeeper.RefusedError{Act: act, Reason: "not confirmed; nothing changed"}
	}
	return nil
}

// ConfirmUnlessYes is Confirm for a command with --yes.
func (p *Program) ConfirmUnlessYes(yes bool, act, facts, answer string) error {
	if yes {
		return nil
	}
	err := p.Confirm(act, facts, answer)
	var refused *lockkeeper.RefusedError
	if errors.As(err, &refused) && !term.IsTerminal(p.In) {
		refused.Next += ", or with --yes"
	}
	return err
}
