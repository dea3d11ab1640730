// Package access says who may use the server of a codebase, and in which role.
//
// Every user has a name and a role. Viewers read; operators also decide and control runs;
// admins also force-release locks of others. Agents acquire locks and write under them, and never decide.
// A person logs in with a token, or with a one-time ticket that the server exchanges for a
// session. Tickets and sessions are passes: secrets that stand for a person until they
// expire.
//
// Accounts are a directory in the user's own state that only the user can read:
//
//	people/<id>.json    a name and its role; the id is the SHA-256 of the token
//	tickets/<id>.json   whom a ticket logs in, and until when; the id is its SHA-256
//	sessions/<id>.json  whose session it is, and until when; the id is its SHA-256
//	servers/<id>.json   where a server of the codebase listens, and its process
//
// Invariants:
//
//  1. No secret is stored, only the hash of each token, ticket and session. So a reader of
//     the directory cannot log in.
//  2. A ticket works once: the process that removes its file has used it.
//  3. When a name is removed, its token and its sessions stop working at once: each check
//     reads the files again, and nothing is cached.
//  4. A session has the role that its person has now. It ends when its person logs out, in
//     every process and for good, or when it expires.
//  5. The number of tickets and sessions of a person is bounded.
//  6. All secrets are random: a weak one cannot be chosen.
//  7. A name that is removed and added again is another person (Person.ID).
//  8. Each server has a record of its own: one that ends, or was killed, hides no other.
//
// The package starts no goroutines, and several processes may use one directory.
package access
