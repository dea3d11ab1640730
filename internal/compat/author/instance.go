package author

import (
	"fmt"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
)

// InstanceVariable is the environment variable that names the instance of a session.
const InstanceVariable = "LOCKKEEPER_INSTANCE"

// An Instance is a session of an agent or a person that makes claims.
type Instance struct {
	ID      string // such as CLI-12345, the same for all claims of a session
	Who     string // the person's display name; empty for an agent
	Process *lockkeeper.Process
	Agent   string // its name; empty for a person
	Named   bool   // the ID was given explicitly, so several sessions may share it
}

// InstanceOf returns the instance of the caller: the agent in env, or else the person. The
// ID is named, or the value of InstanceVariable, or derived from the process of the agent
// or the terminal.
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
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
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

// policy returns the policy of the instance's claims.
func (i Instance) policy() string {
	if i.Agent != "" {
		return policyInstance
	}
	return policyPerson
}

// actor returns the actor for events.
func (i Instance) actor(person lockkeeper.Actor) lockkeeper.Actor {
	if i.Agent != "" {
		return lockkeeper.Actor{Name: i.ID + " (" + i.Agent + ")", Kind: lockkeeper.ActorAgent}
	}
	return person
}

// Has reports whether a claim belongs to this session. A process that reuses the PID of an
// earlier one is a different session, unless the ID was given explicitly.
func (i Instance) Has(s GrantStatus) bool {
	return s.Instance == i.ID && !s.Foreign && (i.Named || s.session == i.session())
}

// session distinguishes sessions with the same ID.
func (i Instance) session() string { return sessionOf(*i.Process) }

func sessionOf(p lockkeeper.Process) string {
	return fmt.Sprintf("%s/%s/%d/%d", p.Boot, p.PIDNS, p.PID, p.Start)
}
