package command

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/term"
)

// Agent returns the coding agent that runs this program, if any. The environment names the agent, but an agent
// can clear it. An agent cannot change the ancestors of its processes, except by detaching them.
func (p *Program) Agent() (name string, inside bool) {
	if name, inside = process.AgentEnvironment(p.Env); inside {
		return name, true
	}
	name, _, inside = p.agentAbove()
	return name, inside
}

// agentAbove returns the nearest agent among the ancestors of this process: a known agent
// program, or the process of a session of the open project.
func (p *Program) agentAbove() (name string, who lockkeeper.Process, found bool) {
	above := p.above()
	if len(above) == 0 {
		return "", who, false
	}
	sessions := map[lockkeeper.Process]string{}
	for _, s := range p.SessionsAbove(context.Background()) {
		sessions[*s.Process] = s.Agent
	}
	for _, a := range above {
		if name = a.Agent; name == "" {
			name = sessions[a.Process]
		}
		if name != "" {
			return name, a.Process, true
		}
	}
	return "", who, false
}

func (p *Program) above() []process.Ancestor {
	if p.Above == nil {
		return nil
	}
	return p.Above()
}

// SessionsAbove returns the sessions that started this process, the nearest first, or none
// if the sessions cannot be read.
func (p *Program) SessionsAbove(ctx context.Context) []session.Info {
	if p.Sessions == nil {
		return nil
	}
	list, err := p.Sessions.Enclosing(ctx, processes(p.above()))
	if err != nil {
		p.Say("cannot read the sessions: " + err.Error())
	}
	return list
}

// Mine returns which grants and changes of the open project are the caller's own: those of its
// session, or those of this process and this user.
func (p *Program) Mine(ctx context.Context) (*session.Mine, error) {
	holder, err := process.Holder()
	if err != nil {
		return nil, err
	}
	return p.Sessions.Mine(processes(p.above()), p.SessionsAbove(ctx), process.Under(p.Env), holder), nil
}

func processes(above []process.Ancestor) (list []lockkeeper.Process) {
	for _, a := range above {
		list = append(list, a.Process)
	}
	return list
}

// caller returns the caller that uses the tokens of this user.
func (p *Program) caller() project.Caller {
	name, inside := p.Agent()
	if !inside {
		return project.Caller{}
	}
	_, own, found := p.agentAbove()
	if !found {
		own, _ = process.Anchor(p.Env) // without an anchor, the caller cannot use a token later
	}
	return project.Caller{Agent: name, Own: own, Above: processes(p.above())}
}

// AsPerson opens the project and runs a command that agents may not run.
func (p *Program) AsPerson(ctx context.Context, act string, run func(*project.Project) error) error {
	return p.With(ctx, func(a *project.Project) error {
		if err := p.NoAgent(act); err != nil {
			return err
		}
		return run(a)
	})
}

// ForOthers returns the settings of a command that acts for callers with sessions or tokens
// of their own.
func (p *Program) ForOthers() project.Settings {
	s := p.Settings()
	s.Caller = nil
	return s
}

// Login returns the login name of the caller, or "" if it is unknown.
func (p *Program) Login() string {
	for _, variable := range []string{"LOGNAME", "USER"} {
		if login, _ := p.Lookup(variable); login != "" {
			return login
		}
	}
	if account, err := user.Current(); err == nil {
		return account.Username
	}
	return ""
}

// Person returns the person at the terminal, by login name.
func (p *Program) Person() lockkeeper.Actor {
	name := cmp.Or(p.Login(), fmt.Sprintf("uid %d", os.Getuid()))
	if tty := process.Terminal(); tty != "" {
		name += " on " + tty
	}
	return lockkeeper.Actor{Name: name, Kind: lockkeeper.ActorPerson}
}

// Actor returns who runs this command: an agent, or the person with this account. Without a
// terminal nothing proves that the person is present.
func (p *Program) Actor() lockkeeper.Actor {
	if agent, inside := p.Agent(); inside {
		return lockkeeper.Actor{Name: agent, Kind: lockkeeper.ActorAgent}
	}
	by := p.Person()
	if !p.Attended() {
		by.Kind = lockkeeper.ActorHolder
	}
	return by
}

// Changer returns the caller for acts on landings and kept changes.
func (p *Program) Changer(a *project.Project) acts.Changer {
	return acts.Changer{Actor: p.Actor(), Wrote: func(ctx context.Context, grant, holder string, at time.Time) (bool, error) {
		mine, err := p.Mine(ctx)
		if err != nil || mine.Was(holder, at) || grant == "" {
			return err == nil && mine.Was(holder, at), err
		}
		g, err := a.Locks.Request(ctx, grant)
		return g != nil && mine.Owns(g), err
	}}
}

// MayForce refuses an act that needs a person if there is no terminal, or inside an
// agent's environment.
func (p *Program) MayForce(act string) error { return p.mayForce(act, "run it in a terminal") }

// MayForceWithoutYes is MayForce for commands that do not ask with --yes, which is not given.
func (p *Program) MayForceWithoutYes(act string) error {
	return p.mayForce(act, "run it in a terminal, or with --yes")
}

func (p *Program) mayForce(act, next string) error {
	if err := p.NoAgent(act); err != nil {
		return err
	}
	if !p.Attended() {
		return &lockkeeper.RefusedError{Act: act, Reason: "it needs a typed answer and this is not a terminal", Next: next}
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
		Next: "ask a person to run it in their own terminal"}
}

// Confirm shows facts and asks a person to type the answer. It is for acts that override other people or programs;
// Agree is for the others.
func (p *Program) Confirm(act, facts, answer string) error {
	return p.ask(act, fmt.Sprintf("%s\nType %q to continue, anything else to cancel: ", facts, term.Clean(answer)),
		func(line string) bool { return line == answer })
}

// Agree shows facts and asks a person whether to continue. The default is no.
func (p *Program) Agree(act, facts string) error {
	return p.ask(act, facts+"\nContinue? [y/N] ", Yes)
}

// Yes reports whether an answer to a question of yes or no is yes.
func Yes(line string) bool {
	return strings.EqualFold(line, "y") || strings.EqualFold(line, "yes")
}

func (p *Program) ask(act, question string, agrees func(line string) bool) error {
	if err := p.MayForce(act); err != nil {
		return err
	}
	fmt.Fprint(p.Err, question)
	line, err := bufio.NewReader(p.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if !agrees(strings.TrimSpace(line)) {
		return &lockkeeper.RefusedError{Act: act, Reason: "not confirmed; nothing changed"}
	}
	return nil
}

func (p *Program) AgreeUnlessYes(yes bool, act, facts string) error {
	if yes {
		return nil
	}
	if err := p.MayForceWithoutYes(act); err != nil {
		return err
	}
	return p.Agree(act, facts)
}
