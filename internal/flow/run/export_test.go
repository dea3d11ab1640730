package run

import "context"

// KeepStill takes the lander, so no batch of the run can land until done is called. A batch that
// was overtaken too often does the same.
func (p *Pipeline) KeepStill() (done func()) {
	<-p.lander
	return func() { p.lander <- struct{}{} }
}

// TakeBaseline takes the baseline of the run, without starting a batch.
func (p *Pipeline) TakeBaseline(ctx context.Context) error { return p.takeBaseline(ctx) }

// Enqueue finds the units of the flow and queues all work that is due. It starts none, so a test
// can dispatch it without agents.
func (p *Pipeline) Enqueue(ctx context.Context) error {
	if err := p.discover(ctx); err != nil {
		return err
	}
	for _, unit := range p.units {
		if err := p.advance(ctx, unit); err != nil {
			return err
		}
	}
	return nil
}
