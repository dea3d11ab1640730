// Package agent calls coding agents: the command-line programs claude, codex and
// gemini, and any other command. It builds the command, follows what the agent says,
// and turns that into one Result or one error with a class.
//
// Invariants:
//
//  1. The agent writes its output into a file by its own hand; this process only reads
//     it there. So what was said survives this process, and the same reader decides
//     while the agent runs, when it has ended and after a crash (Completed).
//  2. A complete result in the file means finished, whoever died since. A result is
//     complete when it is a whole line, of the session that the output began with, and
//     the last word: nothing follows it, and nothing is left running that the agent
//     waits for. A file that was cut anywhere before its end is not complete. A command
//     without a protocol has no last word; it is finished when its end was recorded.
//  3. Prompts and secrets never stand in an argument list, which every user of a machine
//     can read. The prompt is the standard input, secrets stay in the environment, and a
//     call that would show one is refused.
//  4. What an agent says is data. A structured answer counts only when it matches its
//     schema, and text for display has no control characters. The class of an error is
//     read from the places where the program reports errors, never from what the model
//     wrote.
//  5. Memory is bounded, whatever is said: by line, by event, by answer. A longer line is
//     passed over, a longer answer is an error, and an output that outgrows its limit
//     ends the call.
//  6. A request that an agent cannot honour is refused, never run in a weaker form.
//  7. Call returns after its Runner has. Events come in order from the goroutine that
//     called Call, and none after it returned.
//
// What the programs promise, and where that was read, stands with each adapter.
//
// Processes are run by whoever calls, through Runner: this package starts none.
//
// Goroutines: Call owns one, in which the Runner runs, and waits for it.
package agent
