package view

import (
	"context"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/fleet"
)

// sharing returns the machines that share the calls of the current run, the conductor first, and adds
// the slots of those that joined to the slots of the snapshot.
func (rd *Reader) sharing(ctx context.Context, s *snapshot) ([]fleet.Machine, error) {
	list, err := conduct.Machines(ctx, rd.project)
	for _, m := range list {
		if m.Conducts || m.Stops || m.Gone {
			continue
		}
		for i := range s.slots {
			if pool := s.slots[i].Pool; pool == fleet.AgentPool || pool == fleet.TestPool {
				s.slots[i].Limit += m.Slots(pool)
			}
		}
	}
	return list, err
}

// addCaller marks the running call of an item of a flow, and says which other machine carries it out.
func (rd *Reader) addCaller(ctx context.Context, v *Item) error {
	it := &v.Why.Item
	if it.Status != lockkeeper.ItemDispatched {
		return nil
	}
	if n := len(v.Calls); n > 0 {
		v.Calls[n-1].Running = v.Calls[n-1].Open && !v.Lost
	}
	list, err := conduct.Machines(ctx, rd.project)
	for _, m := range list {
		for _, w := range m.Working {
			if !m.Conducts && w.Work == ItemName(it) {
				v.On = m.Name
			}
		}
	}
	return err
}
