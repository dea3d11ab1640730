// Package sandbox runs a command that sees only the files it is given.
//
// A Confinement lists the directories and files that the command may write and read.
// Every command also sees the directories of the system, read-only: programs,
// libraries and their configuration. It has its own home directory and /tmp. It
// cannot reach the rest of the machine, above all the user's home directory.
//
// Two mechanisms of the kernel enforce that. Either works alone where the other is
// missing, and neither needs privileges if the system permits user namespaces:
//
//   - Namespaces: the command gets its own processes and a new root, in which only
//     the listed paths are mounted.
//   - Landlock: the command cannot open a path that is not listed.
//
// With namespaces, a Confinement may have overlays: merged directories, which the first process
// of the namespaces mounts (package overlay). The command sees one at a path that is an empty
// directory outside. It does not see the directories that the overlay consists of.
//
// Wrap turns a command into one that starts this same program again, which calls
// Main first:
//
//	supervisor ─▶ this program, stays outside and ends as the command ends
//	                └▶ this program, first process of its namespaces: mounts, reaps
//	                     └▶ the command, restricted before it begins
//
// Without namespaces the program becomes the command itself.
//
// Invariants:
//
//  1. A Level is what Probe saw enforced on this machine. A command runs under all
//     of its Level or not at all (ExitFailed).
//  2. No file can be read, and no directory listed, outside of the Confinement
//     and the system (HoldsReads). Files of the system that not every user of the
//     machine may read, such as password hashes and host keys, are left out, also for root.
//  3. No file's content and no directory changes outside of Confinement.Write, the upper
//     directories of overlays, devices that keep nothing, and the command's own
//     directories (HoldsWrites).
//  4. Paths are opened without following links. A link that is swapped in after
//     the check is refused.
//  5. Nothing inside gains privileges: no set-user-ID program, and root keeps no
//     capability by which mounts, devices or the kernel could be changed.
//  6. The command has no controlling terminal and no descriptor of one, and only
//     its standard files are open. It can type only into a terminal that it made
//     itself, and not with TIOCSTI. It stays in its control group.
//  7. With namespaces, all that the command started ends when the command ends, or
//     when the supervisor or a process between them dies. Groups, sessions, parents
//     and environments make no difference. All processes have ended before the end
//     of the command can be seen from outside.
//  8. Signals to the command's process group reach the command once. The signal that
//     ended the command is seen outside.
//
// What is not enforced:
//
//   - By Landlock alone: a command sees names, sizes, times and link texts of all
//     files, and can watch them. It can change modes, times, owners and extended
//     attributes. It can connect to every socket whose path it knows. It shares
//     /dev/shm and the memory and queues of System V with all processes. It cannot
//     make pseudo-terminals. process.Run stops what the command leaves running.
//     Before version 3 the command can truncate other files. Before version 6 it can
//     send signals to other processes of the user.
//   - Without version 6 of Landlock: sockets with an abstract name.
//   - The network, which agents need for their API, and so every service that
//     listens on TCP here. Services must not trust a caller for being local.
//   - What is listed: an agent reads its own login.
//   - How much a command uses of the machine: memory, time, disk, processes.
//
// A command may notice these differences:
//
//   - The root is read-only and has few directories. For root, /proc is read-only.
//   - A rename or a hard link from one path of Write into another fails with EXDEV,
//     as between disks.
//   - In an overlay, the first change to a file ends its hard links. A process whose working
//     directory is renamed, or that has a renamed directory open, keeps the removed one.
//   - If the command may change an overlay, a signal can interrupt any rename (EINTR), if it
//     arrives in the moment before the rename is answered and its handler does not restart
//     system calls.
//   - A file that Write lists can be written in place, but not replaced by a rename.
//   - The process group has the number 0, because its leader is outside.
//
// In an overlay, the kernel refuses to rename a directory that comes from a lower directory
// (EXDEV). A filter of system calls reports renames to the thread from which the command was
// started. It renames such a directory itself: it makes new directories with links to all
// files, and then removes the old ones. It leaves all other renames to the kernel. The thread
// has the restrictions of the command, so it can do nothing that the command could not. For a
// process with other users, capabilities, filters or mounts than the command it does nothing.
// It cannot tell whether a process has restricted itself further with Landlock alone. Before
// Linux 5.19, in containers that forbid such reports, for 32-bit programs and for paths through
// links in /proc, a command sees EXDEV. A command cannot filter calls in this way itself.
//
// Restrictions belong to a thread and are inherited by the processes that it starts.
// So they are applied to one locked thread. Applying them to all threads, as
// libraries do, needs C code or a newer kernel.
package sandbox
