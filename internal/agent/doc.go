// Package agent calls coding agents: the programs claude, codex and gemini, and any other
// command. It builds the command line, follows the agent's output, and turns it into one
// Result or one typed error.
//
// Invariants:
//
//  1. The agent writes its output directly into a file, and this process only reads that
//     file. So the output survives this process, and the same reader evaluates it while
//     the agent runs, after it ended, and after a crash (Completed).
//  2. A complete result in the file means that the call finished, whichever process died
//     since. A result is complete if it is a whole line, belongs to the session that the
//     output began with, and is final: nothing follows it and no background work is
//     pending. A truncated file is not complete. A command without a protocol is finished
//     when its exit was recorded.
//  3. Prompts and secrets are never in an argument list, which every user of the machine
//     can read. The prompt is sent on standard input, and secrets stay in the environment.
//     A call that would expose one is refused.
//  4. Agent output is untrusted data. A structured answer counts only if it matches its
//     schema, and displayed text has no control characters. The type of an error comes from
//     the fields where the program reports errors, never from the model's text.
//  5. Memory is bounded per line, event and answer. Overlong lines are skipped, an overlong
//     answer is an error, and a call whose output exceeds its limit is ended.
//  6. A request that an agent cannot honor is refused, never run in a weaker form.
//  7. Call returns after its Runner has returned. Events arrive in order, on the goroutine
//     that called Call, and never after it returned.
//
// Each adapter is one file (claude.go, codex.go, gemini.go, plain.go) that documents what its
// program promises and where that was read. adapter.go lists them, and package program has the
// other facts about a program.
//
// The caller runs the processes, through Runner; this package starts none.
//
// Goroutines: Call owns one, in which the Runner runs, and waits for it.
package agent
