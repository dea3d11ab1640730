// Package durable replaces whole files so that they survive crashes: readers find
// the old content or the new, never a part of either, even after a crash.
//
// Invariants:
//
//  1. New content is written to a temporary file in the same directory, fsynced,
//     renamed over the target, and the directory is fsynced: in this order.
//  2. Whatever fails up to and including the rename, the old file is untouched
//     and the temporary file is removed. Only a crash leaves one behind; its
//     name begins with TempPrefix, and it is never read.
//  3. A failed rename is retried after 100, 200 and 300 ms, because scanners may
//     hold a file for a moment. Then its error is returned.
//  4. A failed fsync is never retried: the kernel may have dropped the dirty pages,
//     and a second fsync would still succeed. Its error is returned.
//  5. If the directory's fsync fails, the new content is in place but may not
//     survive a crash: Error.Replaced says so.
//  6. A target that is a symlink, a directory or a device is refused. Writing
//     through a link would change a file at another path, and replacing the link
//     would detach that file.
//  7. WriteJSON creates missing directories. The name of each is fsynced in its parent
//     before the next one is created.
//
// A replaced file keeps its permission bits; its owner becomes the writer, and
// its other hard links keep the old content.
//
// All file operations go through Ops, so that package durabletest can make them
// fail. The package has no goroutines.
package durable
