// Package links checks what the documents of a repository refer to: files and
// headings, and on request the web. It reads, and writes nothing: a fix is the
// new content of a document, for the gate to land.
//
//	walk ─▶ parse (each document by itself) ─▶ resolve ─▶ ask the web ─▶ report
//
// Invariants:
//
//  1. What a reference is, goldmark decides: nothing inside of code blocks is one,
//     and the text of a link is not looked at besides the link.
//  2. Every finding names a file and a line: that of the target as it is written.
//     One that is used by reference is found where it is defined, once.
//  3. Nothing outside of the root is read, whatever a link of the disk leads to,
//     and nothing is opened that is not a regular file.
//  4. What was to be checked and could not be is a finding: a document that is
//     missing, cannot be read, or would take a parser forever.
//  5. The same tree gives the same report, whoever of its workers was faster.
//  6. Nobody on the web is asked unless Options.Web says so. No connection is made
//     to an address that is not public, whichever name or redirect led there,
//     unless that is allowed: the address is looked at when it is dialled.
//  7. A fix changes targets alone. A document is parsed again with them in place,
//     and every other reference must be as it was; if not, there is no fix.
//
// No goroutine outlives a call.
package links
