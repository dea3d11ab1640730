// Package tree resolves a spelling of a path to exactly one lockkeeper.Target, or
// refuses it. The *lockkeeper.InputError says why and what to do instead. It reads
// the disk and changes nothing on it.
//
// Invariants:
//
//  1. One file has one name: any two accepted spellings of a file give the same
//     target, through symlinks, doubled slashes, absolute paths and, on disks
//     that fold case, through case and Unicode form.
//  2. A target is never outside the root. The walk goes one segment at a time
//     from the open root directory and lets the kernel follow no link. So a
//     concurrently swapped link can change which name is found, but it stays
//     inside the root.
//  3. A target resolves to itself: its path, with a trailing slash if it is a
//     directory, is also a spelling of it.
//  4. A file with a second name that cannot be detected (a hard link locked for
//     writing, a short FAT name, a bind mount) is refused.
//  5. Nothing is cached between two calls except the open root.
//
// A target that does not exist yet is a file, or a directory if it is spelled with
// a trailing slash. Its parents need not exist either.
//
// Reserved at the top of the root: .git, as a directory, file or link, is one
// lockkeeper.GitTarget and cannot be locked in part; .lockkeeper cannot be
// locked at all. Deeper down both are ordinary names.
//
// In a directory that folds case, a target carries the folded, composed (NFC)
// spelling, for files that exist and for those that do not. Elsewhere names are
// bytes, and the composed and decomposed forms of a name are two files.
//
// The package has no goroutines; a Root is safe for concurrent use.
package tree
