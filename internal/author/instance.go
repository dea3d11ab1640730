package author

import (
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/process"
)

// InstanceVariable names the instance for a whole session.
const InstanceVariable = "LOCKKEEPER_INSTANCE"

// Instance is who claims.
type Instance struct {
	ID      string // such as CLI-12345, the same for all claims of a session
	Who     string // the person, as others should see them; empty for an agent
	Process *lockkeeper.Process
	Agent   string // which one it is; empty: a person
	Named   bool   // the ID was given, and so is the same in several sessions
}

// InstanceOf finds out who calls with this environment: the agent that it runs inside of,
// or without one the person. The id is that of the session: of the agent, or of the
// person's terminal. Where neither can be told, as
// in scripts, it is given, as an argument or in the environment.
func InstanceOf(env []string, agent, named string, person lockkeeper.Actor) (Instance, error) {
	anchor, err := process.Anchor(env)
	if err != nil {
		return Instance{}, err
	}
	i := Instance{ID: named, Process: &anchor, Agent: agent}
	if agent == "" {
		i.Who = person.Name
	}
	kind := "CLI"
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == InstanceVariable && named == "":
			i.ID = value
		case name == "CLAUDE_CODE_ENTRYPOINT" && strings.Contains(value, "desktop"):
			kind = "Desktop"
		}
	}
	if i.Named = i.ID != ""; !i.Named {
		i.ID = fmt.Sprintf("%s-%d", kind, anchor.PID)
	}
	return i, nil
}

// policy is the one that the instance's claims have.
func (i Instance) policy() string {
	if i.Agent != "" {
		return policyInstance
	}
	return policyPerson
}

// actor is who acts, for the record.
func (i Instance) actor(person lockkeeper.Actor) lockkeeper.Actor {
	if i.Agent != "" {
		return lockkeeper.Actor{Name: i.ID + " (" + i.Agent + ")", Kind: lockkeeper.ActorAgent}
	}
	return person
}

// Has reports whether a claim is this session's own. A process that got the number
// of an earlier one is somebody else, unless the name was given.
func (i Instance) Has(s Standing) bool {
	return s.Instance == i.ID && !s.Foreign && (i.Named || s.session == i.session())
}

// session tells apart sessions that have one id.
func (i Instance) session() string { return sessionOf(*i.Process) }

func sessionOf(p lockkeeper.Process) string {
	return fmt.Sprintf("%s/%s/%d/%d", p.Boot, p.PIDNS, p.PID, p.Start)
}
