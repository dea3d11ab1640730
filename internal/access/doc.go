// Package access says who may speak to the server of a codebase, and as what.
//
// Everybody who may has a name and a role: viewers look, operators decide and steer,
// admins also take locks away; agents take locks and write under them, and never
// decide. A person proves who they are with a token, or with a session that a one-time
// ticket was exchanged for.
//
// What it keeps, in a directory of the user's own state that only they can read:
//
//	people/<id>.json    a name and its role; the id is the SHA-256 of the token
//	tickets/<id>.json   whom a ticket logs in, and until when; the id is its SHA-256
//	sessions/<id>.json  whose session it is, and until when; the id is its SHA-256
//	server.json         where the server listens
//
// Invariants:
//
//  1. No secret is stored: a token, a ticket or a session is known to the person it was
//     given to, and here by its hash alone. Reading the directory lets nobody in.
//  2. A ticket logs in once: whoever removes its file has used it, and nobody else can.
//  3. A name that is removed opens nothing from then on, neither with its token nor
//     with sessions: each look reads its file anew, and nothing is cached.
//  4. A session has the role that its person has now. It ends when it is logged out, in
//     every process and for good, or with its time.
//  5. A person has a bounded number of tickets and sessions, so their files are few.
//  6. No secret can be chosen by a person, so none is weak.
//  7. A name that is removed and added again is another person (Person.ID).
//
// The package starts no goroutines, and several processes may use one directory.
package access
