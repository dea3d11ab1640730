// Package research asks the Anthropic Messages API about one topic: text in, text out, no
// tools. It is the only part of the program that calls a model itself; all other phases
// run agent programs.
//
// Invariants:
//
//  1. Ask makes one request. Only agent.Retry repeats it, and honors the wait time that the
//     API asks for.
//  2. The API key is sent only to the API's address: redirects are not followed, and no
//     error or log line contains the key. It comes from Options, not from the environment.
//  3. An answer is complete or an error. If an answer was cut off, declined or empty, the
//     error carries its text and cost.
//  4. Errors have the types of package agent, so callers treat usage limits, temporary
//     failures and invalid calls the same for both.
//  5. Memory is bounded, whatever the API sends.
//
// The package has no goroutines.
package research
