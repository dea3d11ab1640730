package sched

import (
	"cmp"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// DefaultEstimate is how long an item is expected to run that names no estimate.
const DefaultEstimate = 5 * time.Minute

// A Step is a piece of work in a plan, for Chains.
type Step struct {
	Estimate time.Duration
	Behind   time.Duration // work after the step that is not in the plan
	Locks    []lockkeeper.Lock
	After    []int // indexes of the steps that must be completed first; no cycle
}

// Chains returns for each step of a plan the estimated time from its start to the end of all work
// that waits for it. A step waits for the steps that it names in After. The writers of a file
// run one after the other, so those that can start late wait for the earlier ones. A reader of a
// file may have to let all its writers go first, except those that wait for the reader.
func Chains(plan []Step) []time.Duration {
	next, order := successors(plan)
	heads := make([]time.Duration, len(plan)) // the longest chain before each step
	for _, i := range order {
		for _, n := range next[i] {
			heads[n] = max(heads[n], heads[i]+plan[i].Estimate)
		}
	}
	writers := map[string][]int{}
	for i, s := range plan {
		for _, l := range s.Locks {
			if l.Mode == lockkeeper.Write {
				writers[l.Path] = append(writers[l.Path], i)
			}
		}
	}
	later := make([]time.Duration, len(plan)) // the work of the later writers of a file
	sums := map[string]time.Duration{}
	for path, list := range writers {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(heads[a], heads[b]) })
		for _, i := range slices.Backward(list) {
			later[i] = max(later[i], sums[path])
			sums[path] += plan[i].Estimate
		}
	}
	chains := make([]time.Duration, len(plan))
	for _, i := range slices.Backward(order) {
		s := plan[i]
		tail := max(s.Behind, later[i])
		for _, n := range next[i] {
			tail = max(tail, chains[n])
		}
		var waits time.Duration
		for _, l := range s.Locks {
			if l.Mode == lockkeeper.Write || sums[l.Path] == 0 {
				continue
			}
			others := sums[l.Path]
			for _, n := range next[i] {
				if slices.ContainsFunc(plan[n].Locks, func(m lockkeeper.Lock) bool { return m.Mode == lockkeeper.Write && m.Path == l.Path }) {
					others -= plan[n].Estimate
				}
			}
			waits = max(waits, others)
		}
		chains[i] = s.Estimate + waits + tail
	}
	return chains
}

// successors returns the steps that wait for each step, and an order in which each step comes
// after those it waits for.
func successors(plan []Step) (next [][]int, order []int) {
	next, open := make([][]int, len(plan)), make([]int, len(plan))
	for i, s := range plan {
		open[i] = len(s.After)
		for _, first := range s.After {
			next[first] = append(next[first], i)
		}
		if open[i] == 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, n := range next[order[k]] {
			if open[n]--; open[n] == 0 {
				order = append(order, n)
			}
		}
	}
	return next, order
}

// setChains sets the chains of the items of one call, which has no cycle.
func setChains(items []*lockkeeper.Item, orders []ItemSpec) {
	index := map[string]int{}
	for i, it := range items {
		index[it.ID] = i
	}
	plan := make([]Step, len(items))
	for i, it := range items {
		plan[i] = Step{Estimate: it.Estimate, Behind: orders[i].Behind, Locks: it.Locks}
		for _, id := range it.After {
			if first, ok := index[id]; ok {
				plan[i].After = append(plan[i].After, first)
			}
		}
	}
	for i, chain := range Chains(plan) {
		items[i].Chain = chain
	}
}

// lengthen lengthens the chains of the stored items that a new item waits for, and of those that
// they wait for. It changes at most examineAtOnce items, because a long chain that grows item by
// item would otherwise be rewritten each time. Items that wait on a lock keep their place in the
// list of its waiters.
func lengthen(tx *lock.Tx, it *lockkeeper.Item) error {
	queue := []*lockkeeper.Item{it}
	for changed := 0; len(queue) > 0 && changed < examineAtOnce; {
		behind := queue[0]
		queue = queue[1:]
		for _, id := range behind.After {
			first, err := tx.Item(id)
			if err != nil {
				return err
			}
			if first == nil || first.Status != lockkeeper.ItemQueued || store.IsOnLock(first.WaitsOn) || first.Chain >= first.Estimate+behind.Chain {
				continue
			}
			first = first.Clone()
			first.Chain = first.Estimate + behind.Chain
			if err := tx.SaveItem(first); err != nil {
				return err
			}
			queue = append(queue, first)
			changed++
		}
	}
	return nil
}
