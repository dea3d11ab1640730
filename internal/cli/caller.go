package cli

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
	"lockkeeper/internal/session"
)

// agent is the coding agent that this runs inside of, if it is one: as its environment says,
// which an agent can clear, or by what it was started from, which it cannot, short of
// detaching it.
func (p *program) agent() (name string, inside bool) {
	if name, inside = process.AgentEnvironment(p.Env); inside {
		return name, true
	}
	name, _, inside = p.agentAbove()
	return name, inside
}

// agentAbove is the nearest agent among the processes that this was started from: a program
// that is known for one, or the window of a session of the open codebase.
func (p *program) agentAbove() (name string, who lockkeeper.Process, found bool) {
	above := p.above()
	if len(above) == 0 {
		return "", who, false
	}
	sessions := map[lockkeeper.Process]string{}
	for _, s := range p.sessionsAbove(context.Background()) {
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

func (p *program) above() []process.Ancestor {
	if p.Above == nil {
		return nil
	}
	return p.Above()
}

// sessionsAbove are the sessions from whose windows this was started, the nearest first.
// Where they cannot be asked there are none: whoever needs them opens the codebase, and is
// told there.
func (p *program) sessionsAbove(ctx context.Context) []session.Session {
	if p.book == nil {
		return nil
	}
	list, err := p.book.Below(ctx, processes(p.above()))
	if err != nil {
		p.say("sessions cannot be asked: " + err.Error())
	}
	return list
}

func processes(above []process.Ancestor) (list []lockkeeper.Process) {
	for _, a := range above {
		list = append(list, a.Process)
	}
	return list
}

// caller is who uses the tokens of this user here.
func (p *program) caller() app.Caller {
	name, inside := p.agent()
	if !inside {
		return app.Caller{}
	}
	_, own, found := p.agentAbove()
	if !found {
		own, _ = process.Anchor(p.Env) // none: then it can use nothing later
	}
	return app.Caller{Agent: name, Own: own, Above: processes(p.above())}
}

// asPerson runs a command on the open codebase that only a person may run.
func (p *program) asPerson(ctx context.Context, act string, run func(*app.App) error) error {
	return p.with(ctx, func(a *app.App) error {
		if err := p.noAgent(act); err != nil {
			return err
		}
		return run(a)
	})
}

// speaking is the settings of a command that acts for others, who each have sessions or
// tokens of their own.
func (p *program) speaking() app.Settings {
	s := p.settings()
	s.Caller = nil
	return s
}
