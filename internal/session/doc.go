// Package session tracks interactive agents that work on a codebase file by file: agents
// with hooks, and MCP clients.
//
//	Open ──▶ Registry ──Enter──▶ Session ──▶ Claim, Begin, End, News ──▶ Close
//	                           └────▶ Release at the end of a turn, Leave at the end of the session
//
// A session has one grant with policy session. The first path acquires it, each further
// path extends it, every use renews its lease, and the end of a turn releases it. Others see
// the session through that grant: its holder is the session's callsign, and its metadata
// has the terminal, the agent and the task. The session's private state is in a file of the
// user's state directory: its tickets, the file versions it has seen, and its calls in
// progress.
//
// Invariants:
//
//  1. A session never waits for a lock. If a path is held, the claim is refused and leaves a
//     ticket, and the session is told once when the path is free. So two sessions that want
//     each other's files are both told, and neither hangs.
//  2. A path is claimed before the call that writes it begins. A claim gets all of its paths
//     or is refused. An error also refuses the call.
//  3. A git command that rewrites files claims the .git target first and then checks the
//     files of others. A claim acquires its file first and then checks .git. So if the two
//     run at the same time, at least one of them sees the other.
//  4. At most one call of a session runs in this package at a time, by a lock on the
//     session's file. The file is replaced as a whole, so a crash leaves the old or the new
//     version.
//  5. A change counts as a session's own only if the session's record proves it. An unknown
//     change is shown as unknown, and never reverted.
//
// The package starts one goroutine, in Registry.Watched, which ends before that returns.
package session
