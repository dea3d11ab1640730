// Package bookfile reads and writes .locks/locks.json, the locks file of a book project,
// which other tools share:
//
//	{"locks": [{"resource": "Chapter_03", "timestamp": "2025-11-22T10:30:00Z", "instance": "CLI-12345"}]}
//
// Those tools read the file, change it and write it back without any lock. So the file is
// only a mirror: the store holds the locks. Merge compares the two and says what each must
// become, and File changes the file.
//
// Invariants:
//
//  1. Only one Lockkeeper process at a time reads, decides and writes. It holds an
//     exclusive kernel lock on a guard file beside the locks file.
//  2. The file is replaced as a whole, after a last check that it is still what was read.
//     If another tool writes after that check, its version is found in the displaced
//     file and restored before anyone acts on it.
//  3. Entries that Lockkeeper wrote can be told from others: the last digits of the
//     timestamp are a checksum of the rest (Mark). So if another tool writes back an
//     entry that was already removed, it does not count as a new claim.
//  4. Only a complete, readable file proves that an entry was removed. A missing or
//     unreadable file proves nothing about its entries.
//  5. An unreadable file is moved to locks.json.corrupt.<time>, never deleted, and its
//     readable entries count. Before that, a writer that may be in the middle of writing
//     gets two seconds to finish. A complete document of another kind is refused and
//     left unchanged.
//  6. No link out of the root is followed, and the file itself must not be a
//     link. Anything but a regular file is refused without blocking. Hard links of the
//     file keep their content, because the file is replaced and never written in place.
//
// If another tool opened the file before a replacement and writes afterwards without
// truncating it, its text goes to the replaced file and is lost.
//
// A goroutine that waits for the guard outlives a canceled call until the guard is free.
package bookfile
