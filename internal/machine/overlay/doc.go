// Package overlay shows several directories as one, and keeps changes to them in another
// directory. It needs no privileges if the system permits user namespaces.
//
// A Stack names the directories. The kernel merges them (overlayfs), so a merged directory
// of any size is there within a millisecond, and only changed files take space.
//
// Open serves a process without privileges. It starts this same program again in a user
// namespace of its own, which mounts the stack and passes the merged directory back as an
// open file. So a program that calls Open must call Main first. No path leads to the merged
// directory: it exists as long as a process has it or something in it open. Then the same
// Upper can be mounted again.
//
// Invariants:
//
//  1. Lower is never changed.
//  2. All mounts use one format in Upper, for root and for other users: a deleted entry is
//     a character device with number 0/0, and a directory that replaces a lower one has the
//     attribute user.overlay.opaque with the value "y".
//  3. Paths may have any characters. A path that leads through a link is refused.
//  4. A mount outlives the process that made it, but leaves no trace in the mounts of any
//     process, unless the caller attaches it.
//  5. Set-user-ID programs and devices have no effect in the merged directory.
//
// What is not enforced:
//
//   - Nothing may change Lower or Upper from outside while they are mounted. The merged
//     directory may then show anything. The same holds for two mounts of one Upper.
//   - The kernel does not wait for disks (option volatile). What a process wrote survives
//     the death of every process, but not always a power failure.
//
// In the merged directory, renaming a directory that comes from Lower fails with EXDEV, as
// between disks. The first change to a file copies it whole, and ends its hard links.
package overlay
