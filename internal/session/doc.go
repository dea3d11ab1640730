// Package session is who sits there: the interactive agents, and through MCP also others,
// that work on a codebase in a sitting, file by file.
//
//	Open ──▶ Book ──Enter──▶ Seat ──▶ Claim, Begin, End, News ──▶ Close
//	                           └────▶ Release at the end of a turn, Leave at the end of all
//
// A session has one grant with policy `session`. It is taken by try with the first path,
// grows by try with each further one, slides with every touch and is given back at the end
// of a turn. What others see of the session is in that grant: the callsign is its holder,
// and terminal, agent and what it is about are its metadata. What only the session itself
// needs to remember is in a file of the user's own state directory: its tickets, what it
// saw of files, and which of its calls are under way.
//
// Invariants:
//
//  1. A session never waits in the engine. A path that somebody else has is refused, and
//     leaves a ticket: the session is told, once, when the path is free. So two sessions of
//     which each wants what the other holds are both told, and neither hangs.
//  2. A path is claimed before the call that writes it begins. The claim is either wholly
//     given or refused; there is no third answer but an error, which refuses, too.
//  3. An act that rewrites files with git takes the .git target first and looks for others'
//     files then; a claim takes the file first and looks for .git then. So of two that meet
//     at least one sees the other.
//  4. Of one session at most one call is in here at a time, by a lock on its file. The file
//     is replaced whole; after a crash it is the old or the new one.
//  5. A file is called somebody's own only by what is proven: the holder's memory of what it
//     left there. What cannot be told is shown as such, and never put back.
//
// The package starts no goroutines.
package session
