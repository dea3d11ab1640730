package storetest

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// Linearizable runs clients concurrently, each on the store that open returns for it, and
// checks their common history. The caller closes the stores.
//
// shows: SW-43 DL-3 DL-4
func Linearizable(t *testing.T, clients, ops int, open func(client int) store.Store) {
	t.Helper()
	seed := seedOf(t)
	histories := make([]bytes.Buffer, clients)
	var wg sync.WaitGroup
	for i := range clients {
		m := lock.New(yielding(open(i)), lock.Options{})
		t.Cleanup(func() { m.Close() })
		wg.Go(func() {
			if err := RunClient(t.Context(), m, i, ops*Torture(), seed, &histories[i]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var all []Op
	for i := range histories {
		h, err := ReadHistory(&histories[i])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h...)
	}
	if err := CheckHistories(all, time.Minute); err != nil {
		t.Error(err)
	}
}

// CheckHistories reports whether the operations of all clients of one space have one order that
// respects real time and the lock rules. A check that does not end within limit is an error,
// too.
func CheckHistories(ops []Op, limit time.Duration) error {
	var history []porcupine.Operation
	for _, op := range ops {
		end := op.Return
		if end == 0 {
			end = math.MaxInt64 // the operation may have taken effect at any later time, or never
		}
		history = append(history, porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Output: op.Answer, Return: end})
	}
	model := sequential.ToModel()
	switch result, info := porcupine.CheckOperationsVerbose(model, history, limit); result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("the check of %d operations did not end within %v", len(ops), limit)
	default:
		return fmt.Errorf("%d operations are not linearizable; the longest that are:\n%s", len(ops), longest(info, ops))
	}
}

// longest describes, for each part, how many operations could be ordered, and the remaining
// operations.
func longest(info porcupine.LinearizationInfo, ops []Op) string {
	var b strings.Builder
	for part, ways := range info.PartialLinearizationsOperations() {
		best := slices.MaxFunc(append(ways, nil), func(x, y []porcupine.Operation) int { return len(x) - len(y) })
		total := 0
		for _, op := range ops {
			if op.Part == part {
				total++
			}
		}
		fmt.Fprintf(&b, "part %d: %d of %d\n", part, len(best), total)
		for _, o := range best[max(0, len(best)-12):] {
			fmt.Fprintf(&b, "  %+v\n", o.Input)
		}
	}
	return b.String()
}

// linearState is the state of a part between two operations.
type linearState struct {
	grants string // one line per grant, sorted, so that states compare as strings
	fence  uint64 // the largest fence so far
}

var sequential = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		out := make([][]porcupine.Operation, parts)
		for _, o := range history {
			part := o.Input.(Op).Part
			out[part] = append(out[part], o)
		}
		return out
	},
	Init: func() []any { return []any{linearState{}} },
	Step: func(state, input, output any) (next []any) {
		for _, s := range step(state.(linearState), input.(Op), output.(string)) {
			next = append(next, s)
		}
		return next
	},
	Hash: func(state any) uint64 {
		h := fnv.New64a()
		h.Write([]byte(state.(linearState).grants))
		return h.Sum64() ^ state.(linearState).fence
	},
	DescribeOperation: func(input, output any) string {
		op := input.(Op)
		return fmt.Sprintf("%s %s %v: %s", op.Kind, op.Grant, op.Locks, output)
	},
}

// step returns the states that an operation may lead to, given its answer.
func step(s linearState, op Op, answer string) []linearState {
	right, next := effect(s, op)
	switch {
	case answer == "":
		return []linearState{s, next} // without an answer, the operation may have taken effect or not
	case answer != right:
		return nil
	case op.Kind == "try" && answer == "ok":
		if op.Fence <= s.fence {
			return nil
		}
		next.fence = op.Fence
	}
	return []linearState{next}
}

// effect returns the correct answer of an operation in a state, and the next state.
func effect(s linearState, op Op) (answer string, next linearState) {
	grants := parseGrants(s.grants)
	mine, have := grants[op.Grant]
	if op.Kind != "try" && !have {
		return "gone", s
	}
	asked := op.Locks
	switch op.Kind {
	case "renew":
		return "ok", s
	case "release":
		delete(grants, op.Grant)
		return "ok", linearState{formatGrants(grants), s.fence}
	case "upgrade":
		i := slices.IndexFunc(mine, func(l lockkeeper.Lock) bool { return l.Path == op.Locks[0].Path })
		if mine[i].Mode != lockkeeper.Upgradeable {
			if mine[i].Mode == lockkeeper.Read {
				return "refused", s
			}
			return "ok", s
		}
		mine[i].Mode = lockkeeper.Write
		asked = mine[i : i+1]
	}
	for name, other := range grants {
		if name != op.Grant && conflict(asked, other) {
			return "blocked", s
		}
	}
	if op.Kind == "try" {
		mine = op.Locks
	}
	grants[op.Grant] = mine
	return "ok", linearState{formatGrants(grants), s.fence}
}

// formatGrants converts the grants of a part to a canonical string; parseGrants converts it
// back.
func formatGrants(grants map[string][]lockkeeper.Lock) string {
	var lines []string
	for name, ls := range grants {
		line := name
		for _, l := range ls {
			line += fmt.Sprintf(" %d%d%s", l.Mode, l.Kind, l.Path)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func parseGrants(s string) map[string][]lockkeeper.Lock {
	grants := map[string][]lockkeeper.Lock{}
	for line := range strings.Lines(s) {
		fields := strings.Fields(line)
		var ls []lockkeeper.Lock
		for _, f := range fields[1:] {
			ls = append(ls, lockkeeper.Lock{Mode: lockkeeper.Mode(f[0] - '0'),
				Target: lockkeeper.Target{Kind: lockkeeper.Kind(f[1] - '0'), Path: f[2:]}})
		}
		grants[fields[0]] = ls
	}
	return grants
}
