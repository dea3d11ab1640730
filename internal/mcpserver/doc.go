// Package mcpserver lets agents ask for locks by the Model Context Protocol: over the
// standard streams of a program that the agent starts, and over HTTP, mounted by the
// server of a codebase.
//
//	client ─▶ tool ─▶ who speaks ─▶ internal/session ─▶ lock engine
//	                              ├─▶ gate      (write)
//	                              ├─▶ deferred  (defer)
//	                              └─▶ rescue, queue  (report_gap, ask_for_more)
//
// Invariants:
//
//  1. Whoever speaks is a session of internal/session, and may what that may. A program
//     that an agent started speaks for the agent's window: where hooks sit there already,
//     it joins their session, and where it came first, they take over its claims. Over
//     HTTP a session is that of one token; another token cannot speak for it.
//  2. No tool takes a lock away from somebody, waits for one, or widens what somebody has
//     been given: asking for more is recorded, for a person.
//  3. Files are written through the gate alone, under the session's own grant.
//  4. Every answer is text for the model and the same as a value. What is refused, and what
//     failed, is an answer that says so; nothing is lost by a panic or a limit of time.
//  5. Paths are from the root of the codebase, or absolute. What lies outside is refused.
//  6. Bodies, lists, sessions at once and the time of a call are bounded.
//
// Goroutines: one for each session over HTTP that has spoken, which gives its claims back
// when it ends. Close ends all sessions and waits.
package mcpserver
