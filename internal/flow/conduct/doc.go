// Package conduct runs the flows of a project: it finds which run is under way, builds its
// pipeline (package run) from the configuration, and conducts it.
//
//	Options ──▶ New ──▶ Conductor ──▶ Survey  finds the units, and begins nothing
//	                              ──▶ Check   refuses what could not run
//	                              ──▶ Start   takes the conductor's lock: an ActiveRun
//
// The command line and the server use the same three steps.
//
// What it keeps on disk, below .lockkeeper:
//
//	run.json   the unfinished run, or else the last one
//	calls      records of agent calls, written by package run
//	prompts    a person's own prompts, read only
//	plans      the plans of runs that other machines began
//	replaced   documents and calls that were here when a run of another machine was continued
//
// Invariants:
//
//  1. Only one process conducts the flows of a space. It holds the conductor's lock while it
//     does, and stops when that lock is lost.
//  2. An agent reaches its workspace, the tools it needs, its own login and the keys of its
//     own API. It never reaches the state of Lockkeeper.
//  3. A run is recorded in run.json before any of its work starts.
//  4. What a run has on disk is at the git remote before a landing of it, so that another machine can continue the
//     run (Orphan, TakeOver). A result of another machine is kept until what was made from it is there.
//  5. A Conductor probes the machine once, and starts the pipeline that it surveyed.
//
// The goroutines of an ActiveRun end before Run returns, except the one that renews the
// conductor's lock. Close ends that one.
package conduct
