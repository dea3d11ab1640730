// Package enrol registers Lockkeeper with interactive agents. It adds our hooks, the MCP server and
// a short instruction to the settings of Claude Code, Codex, Gemini CLI and opencode. It also
// removes them again.
//
//	Site.Plan ──▶ Enrolment, whose edits can be shown ──Apply──▶ files changed, and a record of their old content
//	Site.Undo ──▶ Enrolment ──Apply──▶ files restored
//	Site.Status ──▶ Status: the hooks that a host finds, and the settings that disable them
//
// Invariants:
//
//  1. Text that is not ours stays unchanged, byte for byte: our text is inserted and
//     removed, and no file is rewritten from its parsed form. A file that cannot be parsed
//     is refused with its line, and then nothing is changed anywhere.
//  2. Apply writes exactly what was planned. A file that changed since is refused.
//  3. The record is on disk before the first file is changed. So Undo restores a file
//     exactly if it was not edited since. From an edited file it removes only our text, and
//     the edit says so.
//  4. A hook that runs before a call refuses the call also if our program is missing or
//     crashes. The hook's command line ensures that, because hosts would let the call
//     through.
//  5. Planning an installed state results in no edits.
//  6. A hook found in the settings covers an event only if it is what Plan writes, or is
//     listed as equivalent (covers.go). Otherwise the difference is reported.
//  7. A hook counts only in a file that its host is known to accept completely
//     (accepted.go).
//
// The package starts no goroutines.
package enrol
