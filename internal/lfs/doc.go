// Package lfs is the locking API of git-lfs on the locks of a codebase: what people lock
// with `git lfs lock` and what agents claim is in one engine, so each is in the other's way.
//
//	git lfs lock     POST /lfs/locks               a grant of policy person, that never expires
//	git lfs locks    GET  /lfs/locks               every file that somebody holds for writing
//	git lfs unlock   POST /lfs/locks/{id}/unlock   given back by its owner; taken away by an admin
//	git push         POST /lfs/locks/verify        what is the caller's, and what is not
//
// Invariants:
//
//  1. An owner is the name of a token: whoever locks proved it, and nobody chooses a name.
//  2. A lock of git-lfs is one grant on one file. It is given back with the token of the
//     grant, which is kept here, by its owner alone.
//  3. Taking a lock away from somebody needs an admin, and is refused by the engine, with a
//     record, to an agent. A grant on several files is not taken away for one of them.
//  4. The API keeps locks and no objects: it says so to whoever wants to store some.
//  5. A browser gets nothing: it might send a password that somebody else's page makes it
//     send.
//
// Who asks is known from the context of a request (package access); who may ask is the
// business of whoever mounts the routes. The package starts no goroutines.
package lfs
