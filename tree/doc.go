// Package tree is path identity: it turns one spelling of a path into exactly
// one lockkeeper.Target, or refuses it with a *lockkeeper.InputError that says
// why and what to do instead. It looks at the disk and changes nothing on it.
//
// Invariants:
//
//  1. One file has one name: any two accepted spellings of a file give the same
//     target, through symlinks, doubled slashes, absolute paths and, on disks
//     that fold case, through case and Unicode form.
//  2. A target never lies outside the root. The walk goes one segment at a time
//     from the open root directory and follows no link by itself, so a link
//     swapped in between can change which name is found, never where it lies.
//  3. A target resolves to itself: its path, with a slash behind it when it is a
//     directory, is one more spelling of it.
//  4. What has a second name that cannot be found by looking (a hard link asked
//     for writing, a short FAT name, a bind mount) is refused.
//  5. Nothing is remembered between two calls except the root itself.
//
// A target that does not exist yet is a file, or a directory if it is spelled
// with a trailing slash; its parents need not exist either.
//
// Reserved at the top of the root: .git, as a directory, file or link, is one
// lockkeeper.GitTarget and cannot be locked in part; .lockkeeper cannot be
// locked at all. Deeper down both are ordinary names.
//
// In a directory that folds case, a target carries the folded, composed (NFC)
// spelling, for files that exist and for those that do not. Elsewhere names are
// bytes, and the composed and decomposed forms of a name are two files.
//
// The package has no goroutines; a Root may be used by several at once. It
// needs openat and so builds on Unix only; bind mounts and folding flags of
// single directories are seen on Linux only.
package tree
