package gate

import "context"

// UndoneBy is the landing that undid another one and was not undone itself; 0: what the
// other one changed still stands.
func (g *Gate) UndoneBy(ctx context.Context, seq uint64) (uint64, error) {
	l, err := g.Landing(ctx, seq)
	if err != nil {
		return 0, err
	}
	return g.undoneBy(ctx, l)
}
