// Package mcp serves locks to agents over the Model Context Protocol: on the standard
// streams of a program that the agent starts, and over HTTP behind the server of a codebase.
//
//	client ─▶ tool ─▶ caller ─▶ internal/session ─▶ lock engine
//	                              ├─▶ gate      (write)
//	                              ├─▶ deferred  (defer)
//	                              └─▶ rescue, queue  (report_gap, ask_for_more)
//
// Invariants:
//
//  1. Every caller is a session of internal/session, with the same rights. A program that
//     an agent started shares the session of that agent's hooks: the first of the two
//     creates it, the other joins. Over HTTP a session belongs to one token, and no other
//     token can use it.
//  2. No tool takes a lock away, waits for one, or widens a grant. A request for more is
//     recorded for a person to decide.
//  3. Files are written only through the gate, under the session's own grant.
//  4. Every answer is text for the model and the same facts as structured data. Refusals,
//     failures, panics and timeouts are answers, too.
//  5. Paths are relative to the root of the codebase, or absolute. Paths outside it are
//     refused.
//  6. Request bodies, lists, concurrent sessions and the duration of calls are bounded.
//
// Goroutines: one per HTTP session that made a call, which releases the session's claims
// when it ends. Close ends all sessions and waits.
package mcp
