// Package hook answers the hooks of interactive agents. Claude Code, Codex, Gemini CLI and
// a plugin in opencode run it before and after each tool call. They also run it when a
// session or a turn starts or ends.
//
//	decode (claude.go, …) ──▶ Call ──▶ check (check.go) on internal/session ──▶ Answer ──▶ encode
//
//	event.go, call.go         the events and what each does; a call in a form of our own
//	claude.go, gemini.go, …   the protocols of the hosts, and strict.go their JSON
//	check.go, tell.go         what is done before and after a tool call; at other events
//	shell.go and most others  what a shell command would read, write, remove or run
//	keep.go, discard.go       copies before opaque commands; uncommitted content
//	hook.go, main.go          one call from its input to its exit code
//
// Package enrol registers the events with the hosts. An event that only this package knows
// never arrives.
//
// Invariants:
//
//  1. Hosts let a call through if its hook fails, is missing or times out. So every error
//     before a call refuses it: in the host's own form, or with exit code 2, which all hosts
//     treat as a refusal. The hook's own deadline is well below the host's.
//  2. The codebase is found from the file that is written, not from the agent's working
//     directory. Files outside every codebase are ignored, except for the settings by which
//     hosts run hooks.
//  3. An allowed call gets an empty answer, so the host still asks the person its own
//     questions.
//  4. After a shell command, the files of other holders are compared with their last known
//     content, because the effect of a command cannot be known in advance.
//  5. Refusals are formatted by internal/session/refusal.
//  6. A file counts as seen only if the host reported that it showed the whole file.
//  7. A session can discard uncommitted content only if it saw or created that content.
//  8. Uncommitted files are copied before each opaque command: one with a program, option,
//     redirection, expansion, assignment or word that is not known to be harmless (effect.go,
//     allowed.go, expansion.go). Files that it removes or overwrites go to the rescue shelf.
//
// A hook is one process per call. Its goroutines outlive the answer only if the deadline
// has passed, and then the process exits.
package hook
