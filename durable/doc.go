// Package durable replaces whole files so that they survive crashes: readers,
// and whoever comes after a crash, find the old content or the new, never a
// part of either.
//
// Invariants:
//
//  1. New content is written to a temporary file in the same directory, fsynced,
//     renamed over the target, and the directory is fsynced: in this order.
//  2. Whatever fails up to and including the rename, the old file is untouched
//     and the temporary file is removed. Only a crash leaves one behind; its
//     name begins with TempPrefix, and nobody ever reads it.
//  3. A failed rename is tried again after 100, 200 and 300 ms, to outlast
//     scanners that hold a file for a moment; then its error surfaces.
//  4. A failed fsync is never tried again: the kernel may have dropped the dirty
//     pages, and a second fsync would call them safe. Its error surfaces.
//  5. If the directory's fsync fails, the new content is in place but may not
//     survive a crash: Error.Replaced says so.
//  6. A target that is a symlink, a directory or a device is refused. Writing
//     through a link would change a file under another name than the one that
//     was given, and replacing the link would detach that file.
//  7. WriteJSON makes missing directories. The name of each is fsynced in the directory
//     above before the next one is made.
//
// A replaced file keeps its permission bits; its owner becomes the writer, and
// its other hard links keep the old content.
//
// Every operation on files goes through Ops; package durabletest makes them
// fail. The package has no goroutines.
package durable
