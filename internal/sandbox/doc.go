// Package sandbox runs a command that sees what is named to it, and nothing else.
//
// A Confinement names directories and files to write and to read. Besides, every
// command sees the directories of the system, read-only: programs, libraries and
// their configuration. It has a home directory and a /tmp of its own. The rest of
// the machine, above all the user's home directory, is out of its reach.
//
// Two mechanisms of the kernel hold that, each alone where the other is missing.
// Both need no privilege where the system permits user namespaces:
//
//   - Namespaces: the command gets a new root, in which nothing is mounted but
//     what is named, and its own processes.
//   - Landlock: what is not named cannot be opened.
//
// A command is wrapped (Wrap) into one that starts this same program again, which
// calls Main first:
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
//  2. No file can be read, and no directory listed, outside of the Confinement
//     and the system (HoldsReads). Of the system, what not every user of the
//     machine may read is left out, also for root: password hashes, host keys.
//  3. No file's content and no directory changes outside of Confinement.Write,
//     devices that keep nothing, and the command's own directories (HoldsWrites).
//  4. Paths are opened without following links. A link that is swapped in after
//     the check is refused.
//  5. Nothing inside gains privileges: no set-user-ID program, and root keeps no
//     capability by which mounts, devices or the kernel could be changed.
//  6. The command has no controlling terminal and no descriptor of one, and only
//     its standard files are open. It cannot type into any terminal but one that
//     it made itself, and not even there with TIOCSTI.
//  7. With namespaces, the end of the command, or the death of the supervisor or
//     of anything between them, ends all that the command started, whatever
//     group, session, parent or environment it gave itself, before the end can be
//     seen from outside (EndsWhole). process.Run, which finds processes by these,
//     finds the same ones from outside, so both go together.
//  8. Signals to the command's process group reach the command once, and by which
//     signal it ended is seen outside.
//
// What is not held:
//
//   - By Landlock alone: names, sizes, times and link texts of all files can be
//     seen; modes, times, owners and extended attributes can be changed; a command
//     can connect to every socket whose path it knows; shared memory (/dev/shm) is
//     shared with all processes; pseudo-terminals cannot be made; what a command
//     leaves behind is process.Run's to find. Before version 3 other files can be
//     truncated, before version 6 other processes of the user can be signalled.
//   - Without version 6 of Landlock: sockets with an abstract name.
//   - The network, which agents need for their API, and so every service that
//     listens on TCP here. Services must not trust a caller for being local.
//   - What is named: an agent reads and writes its own login.
//   - How much a command uses of the machine: memory, time, disk, processes.
//
// What a command may meet that it would not outside: a read-only root with few
// directories in it; for root, a read-only /proc; a rename or a hard link from one
// place that may be written into another fails with EXDEV, as between disks; a file
// in Write can be written in place, but not replaced by a rename; its process group
// has the number 0, since its leader is outside.
//
// Go concerns: restrictions belong to a thread and are inherited by what it
// starts, so they are put on one thread that stays locked, and not on all as
// libraries do, which needs C code or a newer kernel.
//
// Outside Linux the package compiles and finds no Level.
package sandbox
