// Package simulate predicts how a plan of work will run, before anybody pays for an
// agent: when it is done, what it waits for, and how much better it could be.
//
//	plan ──▶ the scheduler itself, on a store in memory, with a clock of its own ──▶ report
//	    └──▶ a lower bound, and other ways to schedule, as models ─────────────────┘
//
// Invariants:
//
//  1. The prediction is made by package sched and package lock as they are: whoever
//     changes them changes the prediction. Nothing of them is written here again.
//  2. Time is a number that the loop moves to the next end. Nothing sleeps and there
//     are no goroutines, so a plan has one prediction.
//  3. Who is in whose way is for lockkeeper.Lock.Conflicts to say, in the models and in
//     the bound as well.
//  4. No schedule of the plan ends before the bound, whoever makes it.
//  5. The time an item is blocked is counted for one file: the one that the scheduler
//     has parked it on. So the sums over files, tiers and items are equal.
package simulate
