// Package workspace makes private views of the shared tree, one for one agent:
// everything that is in it, uncommitted files included, in a directory of its
// own outside of it, where the agent can do whatever it likes.
//
//	Dir/                  0700, given by the caller, outside of the shared root
//	  <id>/               one workspace; who uses it has a flock on this directory
//	    tree/             where the agent works
//	      .git/           a private repository, where the shared tree has one
//	    repositories/     the private repositories as they were made
//	    manifest          what was copied, for whoever comes after the maker died
//	    taken/            what TakeOut took out of the tree
//
// Invariants:
//
//  1. Nothing in the shared root is ever opened for writing, made, renamed or
//     removed. What a command does inside tree reaches the shared tree neither
//     through git (no shared index, refs, config, hooks, remotes; only the objects
//     are read from there, so what is pruned there is gone here, too) nor by going up (GIT_CEILING_DIRECTORIES).
//  2. No link is followed, in neither tree. Directories are opened from an open
//     root, one name after the other, so a link that is swapped in leads nowhere. A
//     link is copied as its text; one whose text leads out of the root is reported.
//  3. Nothing in the workspace is written in place. A file is made under a name of
//     its own and renamed, so that a second name that an agent made for it, or for a
//     file of the shared tree, keeps its content.
//  4. A file in the copy is what the shared file held at one moment. It is copied
//     again while it changes, and a name that turns from a file into a directory or
//     a link meanwhile as well; one that never stops is reported as torn.
//  5. With Landed, a landing is in the copy whole or not at all, and all landings
//     up to Seq are in it.
//  6. Every copied file's SHA-256 is known. Changes compares by it whatever may
//     have changed; a stat is only believed when no write can hide behind it, here
//     and in Sums. What cannot be read counts as changed.
//  7. What TakeOut puts back is what was copied, proven by its hash, or what the
//     shared tree holds now, and then it says so. What it takes out is moved aside,
//     never removed, unless its text says all of it (links) or it has no content
//     (pipes, sockets, devices, empty directories).
//  8. Refresh replaces only what the agent has not changed, and tells of every path at
//     which the shared tree is not what was copied. Put and Delete, in contrast, do
//     what an agent could do: what was copied is known as before.
//  9. Close removes only what lies in the workspace's directory and on its mount.
//     A workspace whose user died is found by its free lock, and nobody else removes
//     it unasked.
//  10. After TakeOut and Restore a command finds nothing that an earlier one left,
//     except changes that were not taken out. Restore replaces the private
//     repositories, and a file that holds what was copied has the time that was
//     copied, because git and build tools act on both.
//  11. Survey, TakeOut and Close cost little for a new directory, however much is in it
//     and however long its paths are: it is counted, moved or removed by open
//     directories, and never listed.
//
// What it does not do: it is no sandbox. An agent that runs with the user's
// rights can write to the shared tree by its path, or through a link that leads
// there, and can tamper with manifest, repositories and taken. Whoever starts the agent denies
// that (Landlock, a container). In the same way a folder is linked rather than
// copied only if the caller says that it is sealed. Owners, extended attributes,
// set-uid bits and the times of directories are not copied; hard links become
// files of their own; pipes, sockets and devices are left out and reported.
// Edits of the shared tree that do not come through a gate are consistent by the
// file only. Nothing is fsynced: a workspace is not meant to outlive a power
// failure.
//
// Git is asked in the shared repositories alone, never in a workspace, whose
// configuration names commands of the agent's choice. What is left out (Without) is
// not there for the agent, and what it makes there is a change like any other, so
// that it is seen, and taken out where nothing covers it.
//
// The originals are not kept a second time: that would double the cost of every
// workspace for the few files that are taken out. Three places can still have
// one: the shared tree, most often; its git objects, for files that were
// committed; and nobody, when an uncommitted file was landed over since. Then the
// tree's present content is the better thing to go back to, and TakeOut says that
// it did (Taken.Newer).
//
// Copying clones blocks where the disk can (FICLONE). Elsewhere it reads, hashes and
// writes, in parallel; with Sums, which know the hash already, the kernel copies
// (copy_file_range). The package needs openat and flock and so builds on Unix only;
// cloning and the look at mounts are Linux's.
//
// Goroutines: Make, Changes and Refresh work with a bounded crew of their own and
// return when all of it has ended. A Workspace may be used by several goroutines;
// its methods take turns.
package workspace
