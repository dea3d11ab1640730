// Package bookfile reads and writes the lock file of a book project,
// .locks/locks.json, which tools share that know nothing else:
//
//	{"locks": [{"resource": "Chapter_03", "timestamp": "2025-11-22T10:30:00Z", "instance": "CLI-12345"}]}
//
// Such tools read the file, change what they read and write it back, without asking
// anybody. So the file is a mirror here: what holds is in the store, Merge says what
// the file means for the store and what it is to hold, and File changes it.
//
// Invariants:
//
//  1. Among ours one at a time reads, decides and writes: under an exclusive lock on
//     a guard file beside it, which the kernel gives on when a process dies.
//  2. The file is replaced as a whole, after a look at the last moment whether it is
//     still what was read. What a foreign tool wrote even later is found in what was
//     replaced, and put back before anybody acts on it.
//  3. An entry of ours can be told from a foreign one by itself: the last digits of
//     its timestamp are a check of the rest of it (Mark). So one that a foreign tool
//     writes back after we took it out is not taken for a new claim.
//  4. Only a whole, readable file says that an entry is gone. A file that is missing,
//     or cannot be understood, says nothing about what was in it.
//  5. A file that cannot be understood is moved to locks.json.corrupt.<time>, never
//     removed, and what can be read of it counts. Before that, a writer that is in
//     the middle of it is given two seconds. A whole document of another kind was
//     never a file of locks: it is refused, and left as it is.
//  6. Nothing is read or written through a link that leads out of the root, nor
//     through one in the file's own place; whatever else is there that is no file is
//     refused without waiting for it. Other names of the file (hard links) keep what
//     it held, as it is replaced and never written in place.
//
// What a foreign tool writes through a descriptor that it opened before our
// replacement, and without truncating the file at its opening, goes to the replaced
// file and is lost.
//
// The package has no goroutines. It needs durable.OSDisk and so builds on Linux only.
package bookfile
