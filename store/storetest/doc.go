// Package storetest is the conformance suite that every store.Store
// passes, called in a few lines by the tests of each store:
//
//	storetest.Run(t, storetest.Fixture{
//		Open: func(t *testing.T, clock *storetest.Clock) store.Store {
//			return memstore.New("test", memstore.Options{Now: clock.Now})
//		},
//		Random: 100_000,
//	})
//
// It shows three things. The store keeps the contract of its interface. The lock
// engine on top of it keeps every rule. Long random runs and concurrent histories
// of the two always match a naive model.
//
// Invariants:
//
//  1. Time stands still unless a test moves it: the store under test reads its
//     clocks from a Clock.
//  2. A random run is a function of its seed, which a failure prints together
//     with the operations that led to it. LOCKKEEPER_SEED repeats one run.
//     LOCKKEEPER_TORTURE multiplies the length of the runs.
//  3. Check states what must hold of a space between any two transactions and
//     knows nothing of how the engine gets there.
//  4. A history is written by clients and judged by CheckHistories alone, so
//     the clients may be goroutines, connections or processes.
//
// Goroutines belong to the test that starts them, which waits for all of them.
package storetest
