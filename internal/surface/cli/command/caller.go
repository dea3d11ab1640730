package command

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
)

// Agent is the coding agent that this runs inside of, if it is one: as its environment says,
// which an agent can clear, or by what it was started from, which it cannot, short of
// detaching it.
func (p *Program) Agent() (name string, inside bool) {
	if name, inside = process.AgentEnvironment(p.Env); inside {
		return name, true
	}
	name, _, inside = p.agentAbove()
	return name, inside
}

// agentAbove is the nearest agent among the processes that this was started from: a program
// that is known for one, or the window of a session of the open codebase.
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

// SessionsAbove are the sessions from whose windows this was started, the nearest first.
// If they cannot be read there are none.
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

func processes(above []process.Ancestor) (list []lockkeeper.Process) {
	for _, a := range above {
		list = append(list, a.Process)
	}
	return list
}

// caller returns who uses the tokens of this user.
func (p *Program) caller() project.Caller {
	name, inside := p.Agent()
	if !inside {
		return project.Caller{}
	}
	_, own, found := p.agentAbove()
	if !found {
		own, _ = process.Anchor(p.Env) // none: then it can use nothing later
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

// Speaking returns the settings of a command that acts for others, who have sessions or
// tokens of their own.
func (p *Program) Speaking() project.Settings {
	s := p.Settings()
	s.Caller = nil
	return s
}

// Person is who sits at the terminal, by the name they are logged in with.
func (p *Program) Person() lockkeeper.Actor {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if account, err := user.Current(); err == nil && account.Username != "" {
		name = account.Username
	}
	for _, variable := range []string{"USER", "LOGNAME"} {
		if login, _ := p.Lookup(variable); login != "" {
			name = login
		}
	}
	if tty := process.Terminal(); tty != "" {
		name += " on " + tty
	}
	return lockkeeper.Actor{Name: name, Kind: lockkeeper.ActorPerson}
}

// Actor is who gives this command: an agent, or the person whose account it is, who
// may only be taken for present at a terminal.
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
