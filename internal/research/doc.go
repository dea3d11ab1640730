// Package research asks the Messages API about one topic: a text in, a text out, no
// tools. It is the only part of the program that speaks to a model itself; all other
// phases run agent programs.
//
// Invariants:
//
//  1. Ask makes one request. It is tried again by agent.Retry alone, which honours what
//     the API asks to wait.
//  2. The key is sent to the address of the API and to nobody else: a redirection is not
//     followed, and neither an error nor a log line holds the key. It comes from Options;
//     the environment is not looked at.
//  3. An answer is whole or an error: one that was cut, declined or empty is never taken
//     for an answer. What it held and cost comes with the error.
//  4. Errors have the classes of package agent, so that a limit of the account, a failure
//     that passes and a call that cannot work are treated alike whoever reports them.
//  5. Memory is bounded, whatever the API sends.
//
// The package owns no goroutines.
package research
