// Package hook answers the hooks of interactive agents: Claude Code, Codex and Gemini CLI
// run it before and after each call of a tool, and at the turns of a session.
//
//	decode (claude.go, gemini.go) ──▶ Call ──▶ check (check.go) on internal/session ──▶ Answer ──▶ encode
//
// Invariants:
//
//  1. Hosts let a call through when a hook fails, is missing or takes too long. So whatever
//     goes wrong before a call ends with exit code 2, which all of them take as a refusal,
//     and a deadline of its own, well inside the host's, ends what hangs.
//  2. The codebase is found from the file that is written, never from where the agent works.
//     A file that belongs to no codebase with locks is nobody's business here, but for the
//     settings by which hosts run hooks.
//  3. A call that is let through is answered with nothing that would skip the host's own
//     questions to the person.
//  4. After a command, what others hold is compared: what a shell can do is never known
//     beforehand.
//  5. A refusal has the words of internal/refusal.
//  6. A file counts as seen where all of it stands in what the host says it showed.
//  7. What git could not bring back is taken away only by a session that saw or made it.
//  8. Uncommitted files are copied before each opaque command: one with a part that is not
//     known to be harmless (effect.go). Files that it removes or overwrites go to the rescue
//     shelf.
//
// A hook is one process for one call. The goroutines that read the call and do the work are
// left behind only when the deadline is over, and the process ends then.
package hook
