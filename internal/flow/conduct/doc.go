// Package conduct runs the flows of a project: it finds which run is under way, builds its
// pipeline (package run) from the configuration, and conducts it.
//
//	Options ──▶ New ──▶ Conductor ──▶ Look   a pipeline that begins nothing
//	                              ──▶ Check  refuses what could not run
//	                              ──▶ Lead   takes the conductor's lock and runs the flow
//
// The command line and the server use the same three steps.
//
// What it keeps on disk, below .lockkeeper:
//
//	run.json   which run is under way, or was last
//	calls      traces of agent calls, written by package run
//	prompts    a person's own prompts, read only
//
// Invariants:
//
//  1. Only one process conducts the flows of a space. It holds the conductor's lock while it
//     does, and stops when that lock is lost.
//  2. An agent reaches its workspace, the tools it needs, its own login and the keys of its
//     own API. It never reaches the state of Lockkeeper.
//  3. A run is recorded in run.json before any of its work starts.
//  4. A Conductor probes the machine once, however many pipelines it makes.
//
// The package starts no goroutines of its own. Those of a Lead end before Run returns, but for
// the one that renews the conductor's lock, which ends with Close.
package conduct
