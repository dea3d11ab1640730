// Package scriptedapi serves the APIs of model vendors on loopback without a model, for
// tests. It answers the real Claude Code (messages.go), Codex (responses.go), Gemini CLI
// (contents.go), and other clients of these APIs, from a script.
//
// Invariants:
//
//  1. An answer depends only on the script and on the conversation in the request. The
//     server keeps no state but a count of how often each play began, so conversations can
//     run concurrently.
//  2. A request that the script has no answer for gets an error that clients do not retry,
//     and fails the test.
//  3. Every request is stored completely, in order of arrival.
//
// A script is a list of plays. The first play whose expression matches the user's last
// message is used: its first step answers the message, and each further step answers the
// tool results of the step before. Tool ids tell which step comes next.
//
// In texts and tool inputs, {dir} is the directory given to StartIn, and {0}, {1} … are the
// groups of the play's expression. Nothing is taken from the wording of an agent's prompts, and
// a tool gets no absolute path outside of the directories of the test. Stop, Usage and Cut apply
// to Claude Code only.
//
// Goroutines: those of the HTTP server, which end with the test.
package scriptedapi
