// Package sandbox runs a command so that it writes only where it may.
//
// Two things of the kernel are used, each alone where the other is missing:
// Landlock, and namespaces for mounts and processes. Both need no privilege
// where the system permits user namespaces. A command is wrapped (Wrap) into
// one that starts this same program again, which calls Main first:
//
//	supervisor ─▶ this program, stays outside and ends as the command ends
//	                └▶ this program, first process of its namespaces: mounts, reaps
//	                     └▶ the command, restricted before it begins
//
// Without namespaces the program becomes the command itself.
//
// Invariants:
//
//  1. A Level is what was seen to hold on this machine (Probe), and a command
//     runs under all of its Level or not at all (ExitFailed).
//  2. No file's content and no directory changes outside of Confinement.Write,
//     devices that keep nothing, terminals and shared memory (HoldsWrites).
//  3. Paths are opened without following links, so one that is swapped in after
//     the check is refused rather than followed.
//  4. Nothing inside gains privileges: no set-user-ID program, and root keeps no
//     capability by which mounts, devices or the kernel could be changed. Nothing
//     that was open before reaches the command, but for its standard files.
//  5. With namespaces, the end of the command, or the death of the supervisor or
//     of anything between them, ends all that the command started, whatever
//     group, session, parent or environment it gave itself, before the end can be
//     seen from outside (EndsWhole). process.Run, which finds processes by these,
//     finds the same ones from outside, so both go together.
//  6. Signals to the command's process group reach the command once, and by which
//     signal it ended is seen outside.
//
// What is not held:
//
//   - By Landlock alone: modes, times, owners and extended attributes of other
//     files; Hidden can be read; shared memory (/dev/shm) is everybody's; what a
//     command leaves behind is process.Run's to find. Before version 3 other
//     files can be truncated, before version 6 other processes of the user can be
//     signalled. A Level says which.
//   - Without version 6 of Landlock: sockets with an abstract name can be entered.
//   - Daemons that do work for whoever asks over a socket with a name (docker,
//     systemd, D-Bus) work outside of any sandbox. Doors lists the known ones, to
//     be hidden; without namespaces they cannot be. The same goes for TCP, which
//     stays open because agents need their API.
//   - Terminals: a command may write to those of its user, and a terminal given
//     as its standard input takes its ioctls.
//   - Reading: everything that the user can read and that is not hidden.
//   - How much a command uses of the machine: memory, time, disk, processes.
//
// What a command may meet that it would not outside: /proc and all other
// pseudo files are read-only; a rename or a hard link from one place that may be
// written into another fails with EXDEV, as between disks; a file in Write can
// be written in place, but not replaced by a rename; its process group has the
// number 0, since its leader is outside.
//
// Go concerns: restrictions belong to a thread and are inherited by what it
// starts, so they are put on one thread that stays locked, and not on all as
// libraries do, which needs C code or a newer kernel.
//
// Outside Linux the package compiles and finds no Level.
package sandbox
