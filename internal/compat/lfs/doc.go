// Package lfs serves the git-lfs locking API on the locks of a codebase. Locks that people
// take with `git lfs lock` and claims of agents are in one lock engine, so they exclude
// each other.
//
//	git lfs lock     POST /lfs/locks               acquires a grant of policy person that never expires
//	git lfs locks    GET  /lfs/locks               lists every file that is held for writing
//	git lfs unlock   POST /lfs/locks/{id}/unlock   releases it; an admin can force-release it
//	git push         POST /lfs/locks/verify        separates the caller's locks from others
//
// Invariants:
//
//  1. The owner of a lock is the name of the caller's access token. A caller cannot choose
//     another name.
//  2. A git-lfs lock is one grant on one file. Only its owner can release it, with the
//     grant's token, which is stored on the server.
//  3. A force-release needs the role admin. The engine refuses one by an agent and records
//     the attempt. A grant on several files is not released for one of them.
//  4. The API stores locks and no objects. Requests for objects get an error that says so.
//  5. Requests from browsers are refused: another site's page could send a stored password.
//
// Package access identifies the caller from the request's context. The package that mounts
// the routes decides who may call them. The package starts no goroutines.
package lfs
