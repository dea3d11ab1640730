package access

import (
	"context"

	"lockkeeper"
)

// Role is what somebody may do.
type Role string

// The roles. Viewer, operator and admin each may what those before them may; an agent
// is apart.
const (
	Viewer   Role = "viewer"   // looks
	Operator Role = "operator" // decides and steers as well
	Admin    Role = "admin"    // takes locks away from others as well
	Agent    Role = "agent"    // takes locks and writes under them, and decides nothing
)

var rank = map[Role]int{Viewer: 1, Operator: 2, Admin: 3}

// ParseRole reads the name of a role.
func ParseRole(text string) (Role, error) {
	if r := Role(text); rank[r] > 0 || r == Agent {
		return r, nil
	}
	return "", &lockkeeper.InputError{Field: "role", Value: text, Reason: "there is no such role", Next: "use viewer, operator, admin or agent"}
}

// Need is what a role has to be for an act.
type Need struct {
	AtLeast Role // of viewer, operator and admin
	Agents  bool // agents may do it as well
}

// Meets reports whether a role is enough.
func (r Role) Meets(n Need) bool {
	if r == Agent {
		return n.Agents
	}
	return rank[r] >= rank[n.AtLeast]
}

func (n Need) String() string {
	s := string(n.AtLeast)
	if n.AtLeast != Admin {
		s += " or more"
	}
	if n.Agents {
		s += ", or agent"
	}
	return s
}

// Person is somebody who has proved who they are.
type Person struct {
	Name string
	Role Role

	id string
}

// ID identifies the person. Another person who is given the same name later has another.
func (p Person) ID() string { return p.id }

// Actor is the person as the record of events names them.
func (p Person) Actor() lockkeeper.Actor {
	kind := lockkeeper.ActorPerson
	switch p.Role {
	case Admin:
		kind = lockkeeper.ActorAdmin
	case Agent:
		kind = lockkeeper.ActorAgent
	}
	return lockkeeper.Actor{Name: p.Name, Kind: kind}
}

type personKey struct{}

// With is a context of something that a person asked for.
func With(ctx context.Context, p Person) context.Context {
	return context.WithValue(ctx, personKey{}, p)
}

// Who is the person that asked.
func Who(ctx context.Context) (Person, bool) {
	p, ok := ctx.Value(personKey{}).(Person)
	return p, ok
}
