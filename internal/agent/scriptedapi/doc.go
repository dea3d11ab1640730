// Package scriptedapi is the APIs of models without a model, on loopback, for tests: it
// answers the real Claude Code (messages.go), Codex (responses.go) and Gemini CLI
// (contents.go), and whatever else speaks to these APIs, as a script says.
//
// Invariants:
//
//  1. What is answered follows from the script and the conversation that comes with each
//     request. Conversations may run at once: none is remembered here. All that is counted
//     is how often a play has begun.
//  2. A request that the script has no answer for gets an error that no client tries
//     again, and fails the test.
//  3. Every request is kept, whole, in the order of arrival.
//
// A script is a list of plays. The first whose expression fits what the user said last
// is played: its first step answers that, and each further one the results of the tools
// that the one before has used. The ids of these tools tell which step comes next.
//
// In texts and in the input of tools {dir} is the directory that Claude Code works in,
// and {0}, {1} … are the groups of the play's expression. Stop, Usage and Cut of a step are
// played to Claude Code alone.
//
// Goroutines: those of the HTTP server, which end with the test.
package scriptedapi
