package flow

import "slices"

// A submitted job belongs to no flow. Its items rank with those that apply changes.
const (
	jobPhase = "job"
	jobRank  = 3
)

// QueueOrder lists the names that the phases of all flows have in the queue, by rank.
func QueueOrder() [][]string {
	var order [][]string
	add := func(rank int, name string) {
		for len(order) < rank {
			order = append(order, nil)
		}
		if rank > 0 && name != "" && !slices.Contains(order[rank-1], name) {
			order[rank-1] = append(order[rank-1], name)
		}
	}
	var phases []Phase
	for _, f := range All() {
		phases = append(phases, f.Phases...)
	}
	for _, p := range phases {
		add(p.Rank, p.Name)
	}
	for _, p := range phases {
		add(p.Rank, p.FixQueue)
	}
	add(jobRank, jobPhase)
	return order
}
