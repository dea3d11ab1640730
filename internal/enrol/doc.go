// Package enrol makes interactive agents take part: it puts our hooks, the MCP server and a
// short instruction into the files where Claude Code, Codex and Gemini CLI look for them,
// and takes them out again.
//
//	Plan ──▶ edits, to be shown ──Apply──▶ files, and a record of what they held
//	Undo ──▶ edits, to be shown ──Apply──▶ files as they were
//	Look ──▶ what a host finds: our hooks, where, and what keeps them from doing their part
//
// Invariants:
//
//  1. What is not ours stays as it is, byte for byte: text is put in and cut out, and no
//     file is written anew from what was understood of it. A file that is not understood is
//     refused with its line, and then nothing is changed anywhere.
//  2. What was planned is what is written: a file that changed since is refused.
//  3. The record is on disk before the first file is changed. So Undo restores a file
//     exactly, whenever it is as we left it. From one that somebody edited since only what is
//     ours is cut out, and the edit says so.
//  4. A hook that runs before a call refuses the call also when our program is missing or
//     dies: its command says so itself, since hosts would let the call through.
//  5. Planning what is there already comes to no edits.
//  6. A hook that was found covers its event only when it is what enrolling writes, or is in
//     the small table of what does the same (covers.go). Of anything else it is said in what
//     it differs: what a host makes of it is never guessed.
//  7. A hook counts only in a file of which its host is known to take the whole (accepted.go).
//
// The package starts no goroutines.
package enrol
