package run

import (
	"context"
	"sync"

	"lockkeeper"
	"lockkeeper/internal/agent/supervisor"
)

// A guest executes a call of another machine. It holds no grant here: the conductor holds it.
type guest struct {
	id   string // the item of the call
	call string
	pool string
	slot int
	view supervisor.GrantView

	mu    sync.Mutex
	asked []askedFor
}

func (g *guest) Phase(context.Context, string, ...string) error    { return nil }
func (g *guest) ReturnSlots(context.Context) error                 { return nil }
func (g *guest) Note(context.Context, string) error                { return nil }
func (g *guest) ID() string                                        { return g.id }
func (g *guest) Mark() string                                      { return "guest-" + g.call }
func (g *guest) Grant() *lockkeeper.Grant                          { return nil }
func (g *guest) Slot() int                                         { return g.slot }
func (g *guest) Started(context.Context, lockkeeper.Process) error { return nil }
func (g *guest) requests() supervisor.Handler                      { return guestRequests{g} }

// guestRequests answers the requests of tools in the workspace of a guest.
type guestRequests struct{ g *guest }

func (r guestRequests) Grant(context.Context) (supervisor.GrantView, error) { return r.g.view, nil }

// Gap notes a file that the agent asked for. The conductor records it.
func (r guestRequests) Gap(_ context.Context, path, reason string) error {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	r.g.asked = append(r.g.asked, askedFor{path, reason})
	return nil
}
