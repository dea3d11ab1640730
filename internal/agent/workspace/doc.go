// Package workspace gives each agent a private view of the shared tree. It has every file of the
// tree, including uncommitted ones, and is in a directory outside it, in which the agent may
// change anything.
//
// There are two kinds of workspaces, and the methods of a Workspace mean the same for both. Base
// makes a workspace on layers: an overlay mount of one shared copy of the tree, with a directory
// that takes the changes. Its cost does not depend on the size of the tree. Make makes a copy of
// the whole tree, for machines without overlays or without a sandbox that can mount one. The tests
// run on both kinds.
//
//	Dir/                  0700, from the caller, outside the shared root
//	  <id>/               one workspace; the process that uses it has a flock on it
//	    tree/             where the agent works; on layers, the place of the mount
//	      .git/           a private repository, if the shared tree has one
//	    upper/            on layers: what the agent changed, and taken
//	    repositories/     of a copy: the private repositories as they were made
//	    manifest          what was copied, for a process that adopts the workspace
//	    taken/            what TakeOut took out of the tree
//	  base-<id>/          the layers, see Base; one stays for the next process (Options.Keep)
//
// Between two commands nothing is mounted. Changes are read in the upper directory: what is not
// there has not changed. Methods that change the tree mount it for themselves (beginEdit).
//
// Invariants:
//
//  1. Nothing in the shared root is opened for writing, created, renamed or removed. A
//     command in a workspace reaches the shared tree neither through git nor through parent
//     directories (GIT_CEILING_DIRECTORIES). The private repository has its own index, refs,
//     configuration and hooks, and no remotes. It reads only the objects of the shared one,
//     so an object that is pruned there is missing here too.
//  2. No link is followed in either tree. Directories are opened from an open root, one name
//     at a time, so replacing a name by a link has no effect. A link is copied as text, and
//     reported if it leads out of the root.
//  3. No file in the workspace is written in place. A file is created under a temporary name
//     and renamed, so that hard links of an agent keep their content.
//  4. A copied file has the content of the shared file at one moment. A file that changes is
//     copied again. A file that never stops changing is reported.
//  5. With Landed, a landing is in the copy completely or not at all, and all landings up to
//     Seq are in it.
//  6. The SHA-256 of every copied file is known, and Changes compares hashes. It relies on a
//     stat only if no write can be hidden by it, and so does Sums. A file that cannot be
//     read counts as changed.
//  7. TakeOut restores what was copied, verified by hash, or else the current content of the
//     shared tree, which it reports. It moves an agent's files to taken and removes only
//     links and names without content (pipes, sockets, devices, empty directories).
//  8. Refresh replaces only what the agent has not changed, and reports every path at which
//     the shared tree differs from what was copied. Put and Delete make changes as an agent
//     does: the record of what was copied stays.
//  9. Close removes only what is in the workspace's directory and on its mount. A workspace
//     whose process died is found by its free lock. Only an explicit call removes it.
//  10. After TakeOut and Restore a command finds nothing of an earlier one, except changes
//     that were not taken out. Restore replaces the private repositories. An unchanged file
//     gets its original time. Git and build tools depend on both.
//  11. Survey, TakeOut and Close are fast for a new directory of any size and depth: they
//     count, move or remove it through open directories and never list it.
//
// A workspace is not a sandbox. An agent with the user's rights can write to the shared tree
// by its path, and can change manifest, repositories and taken. The sandbox that runs the
// agent prevents this. For the same reason a folder is linked instead of copied only if the
// caller says that it is sealed.
//
// Owners, extended attributes, set-uid bits and the times of directories are not copied. Hard
// links become separate files. Pipes, sockets and devices are omitted and reported. Edits of
// the shared tree outside the gate are consistent only for single files. Nothing is fsynced,
// because a workspace need not survive a power failure.
//
// Git runs only in the shared repositories, never in a workspace, where an agent may have
// configured commands. Paths in Without do not exist for the agent. A file that it creates
// there is a change like any other.
//
// The originals are not stored a second time, which would double the cost of a copy. TakeOut reads
// an original from the shared tree, or from git's objects. If an uncommitted file was landed over,
// the original is lost. TakeOut then uses the current content of the
// shared tree and reports it (Taken.Newer).
//
// Copying clones blocks if the disk supports it (FICLONE). Otherwise it reads, hashes and
// writes in parallel. If Sums has the hash, the kernel copies (copy_file_range).
//
// Make, Changes and Refresh use a bounded pool of goroutines, which end before the call
// returns. Several goroutines may use a Workspace; its methods run one at a time.
package workspace
