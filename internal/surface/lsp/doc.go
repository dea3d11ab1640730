// Package lsp is a language server that shows the locks of a codebase in any editor. It knows
// no programming language, and runs beside the servers that do.
//
//	editor ─▶ conn ─▶ Server ─▶ document ─▶ root ─▶ lock engine
//	   ◀── diagnostics, messages ──┘           ▲
//	                                event feed ┘
//
// An open file that others hold gets a diagnostic that names the holder. The first edit of such
// a file warns, and a message says when the file is free. Code actions claim the file for the
// person, release the claim, ask the holder, and show why the file is held. If another program changes a
// file that the person holds, a message says so.
//
// Invariants:
//
//  1. The server never writes a file of a codebase, and sends the editor no edits.
//  2. A claim is the person's, the same as by lockkeeper claim in the editor's environment.
//     Closing the file or ending the editor releases the claims that the server made.
//  3. The event feed of a codebase wakes the server. A slow tick finds changes that cause
//     no event: holders whose processes ended, and codebases that appear later.
//  4. A file that cannot be resolved, or belongs to no codebase, gets no diagnostics. While a
//     store cannot be read, its files keep their last diagnostics. Other codebases are not affected.
//  5. Names from files and other programs stay on one line.
//
// Goroutines: one reads the editor's messages. For each codebase one follows its feed, and one compares
// the held files. All have ended when Serve returns. Everything else happens on the goroutine of Serve.
package lsp
