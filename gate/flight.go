package gate

import "context"

// flight counts the commits under one grant in this process that are about to be
// decided or decided and not done.
type flight struct {
	commits int
	landed  chan struct{} // closed when there are none
}

// takeOff counts a commit until the returned function is called.
func (g *Gate) takeOff(grantID string) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.flying[grantID]
	if f == nil {
		f = &flight{landed: make(chan struct{})}
		g.flying[grantID] = f
	}
	f.commits++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if f.commits--; f.commits == 0 {
			delete(g.flying, grantID)
			close(f.landed)
		}
	}
}

func (g *Gate) isFlying(grantID string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flying[grantID] != nil
}

// landAll waits for the commits of this process under a grant.
func (g *Gate) landAll(ctx context.Context, grantID string) error {
	g.mu.Lock()
	f := g.flying[grantID]
	g.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.landed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
