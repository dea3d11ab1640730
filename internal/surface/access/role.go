package access

import (
	"context"

	"lockkeeper"
)

// A Role says what a person or an agent may do.
type Role string

// These are the roles. Operators may do all that viewers may, and admins all that operators may. Agent is not
// part of that order.
const (
	Viewer   Role = "viewer"   // reads
	Operator Role = "operator" // also decides and controls runs
	Admin    Role = "admin"    // also force-releases locks of others
	Agent    Role = "agent"    // acquires locks and writes under them, and decides nothing
)

var rank = map[Role]int{Viewer: 1, Operator: 2, Admin: 3}

func ParseRole(text string) (Role, error) {
	if r := Role(text); rank[r] > 0 || r == Agent {
		return r, nil
	}
	return "", &lockkeeper.InputError{Field: "role", Value: text, Reason: "unknown role", Next: "use viewer, operator, admin or agent"}
}

// A Need is the set of roles that may do something.
type Need struct {
	AtLeast Role // lowest of viewer, operator and admin
	Agents  bool // agents may use the right as well
}

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

// A Person is a logged-in user: a person, or an agent with a token.
type Person struct {
	Name string
	Role Role

	id string
}

// ID identifies the person. If the name is removed and added again, the ID is another one.
func (p Person) ID() string { return p.id }

// Actor returns the person as events name them.
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

func With(ctx context.Context, p Person) context.Context {
	return context.WithValue(ctx, personKey{}, p)
}

func Who(ctx context.Context) (Person, bool) {
	p, ok := ctx.Value(personKey{}).(Person)
	return p, ok
}
