// Package links checks the references in the documents of a repository: files, headings
// and, on request, web addresses. It only reads. A fix is returned as the new content of a
// document, for the gate to land.
//
//	walk ─▶ parse (each document by itself) ─▶ resolve ─▶ ask the web ─▶ report
//
// Invariants:
//
//  1. Goldmark decides what a reference is. Text in code blocks never is one.
//
//  2. Every finding names the file and line of the target as it is written. A target used
//     by reference is reported once, where it is defined.
//
//  3. Nothing outside the root is read, whatever a symbolic link points to, and only
//     regular files are opened.
//
//  4. A document that could not be checked is a finding: it is missing, unreadable, or
//     would take a parser too long.
//
//  5. The same tree gives the same report, in whichever order the workers finish.
//
//  6. The web is asked only if Options.Web is set. Connections go only to public
//     addresses unless others are allowed. The address is checked when it is dialed, so
//     names and redirects cannot hide it.
//
//  7. A fix changes link targets only. The fixed document is parsed again, and every other
//     reference must be unchanged; otherwise there is no fix.
//
//  8. An informational finding may be no mistake: an example, something that the text
//     itself calls missing, or something that is perhaps not a path. It does not make a
//     check fail and has no fix. Links are enforced, whatever the text says.
//
// No goroutine outlives a call.
package links
