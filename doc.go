// Package lockkeeper is the vocabulary of Lockkeeper: the types that every other
// package uses. It is pure: it has no goroutines, no input or output and no clock.
//
// A space is one lock namespace, usually one codebase. A holder asks for a set of
// Locks, each a Target and a Mode, with one Request. It is given all of them at once,
// as a Grant, or none. A Policy sets how long a grant lasts and who may free it. A
// Landing is one commit by the gate under a grant, and an Item is one piece of queued
// work that runs under a grant. Every change of state is an Event in the space's log.
//
// Package store keeps the state. Packages lock (grants), gate (landings) and sched (items)
// decide how it changes.
//
//	lock.go                       modes and which of them conflict, targets, requests, grants
//	policy.go                     the policies, and what each permits
//	item.go                       items, and their order in the queue (QueueKey)
//	landing.go, event.go          landings; events and their kinds
//	error.go, hint.go             errors by code, and the next step that they suggest
//	process.go, instant.go        the process of a holder; times of the lease clock
//	snapshot.go                   a grant as JSON
//
// Invariants that package lock holds on top of any store:
//
//  1. No two live grants of one space conflict: their targets do not overlap, or
//     their modes are compatible.
//  2. A request is granted as a whole or not at all.
//  3. Fences rise strictly within a space and are never used twice.
//  4. A waiting request holds nothing, and a holder waits for nothing.
//  5. Conflicts and Target.Overlaps are symmetric, and each states its rule in one
//     place.
package lockkeeper
