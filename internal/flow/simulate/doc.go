// Package simulate predicts how a plan of work will run before anyone pays for an agent:
// when it finishes, what it waits for, and how much faster it could be.
//
//	plan ──▶ the real scheduler, on a store in memory, with a simulated clock ──▶ report
//	    └──▶ a lower bound, and other scheduling strategies, as models ─────────┘
//
// Invariants:
//
//  1. The prediction runs packages sched and lock unchanged. No rule about which item starts is
//     written here a second time. Only items that wait for a slot for tests take turns.
//  2. Time is a number that the loop advances to the next event. Nothing sleeps and there
//     are no goroutines, so a plan always has the same prediction.
//  3. Conflicts are decided by lockkeeper.Lock.Conflicts, in the models and the bound too.
//  4. No schedule of the plan can finish before the lower bound.
//  5. The time an item is blocked is counted for one file: the one it waits on in the
//     scheduler. So the sums over files, tiers and items are equal.
package simulate
