// Package git works with git repositories. Repo works on the shared repository of
// a root: it reads its state, waits until a person's rebase or checkout has ended, switches
// branches, and commits exactly the files of one batch. WorkTree only reads.
//
// Invariants:
//
//  1. A commit contains the given paths as they are in the work tree, and nothing else.
//     Other files that a person has staged or edited stay staged or edited. For the given
//     paths the work tree counts, even if another version was staged.
//  2. Paths are bytes. Git never reads one as an option, a pattern or another spelling, and
//     none leads out of the root.
//  3. Nothing is forced: no work is overwritten, no ignored file added, no lock of git
//     removed, no hook skipped. A refusal of git or of a hook is returned.
//  4. A commit that fails leaves the index unchanged. Only a crash can leave new files as
//     "to be added later" (git add -N), without content. The next attempt commits them.
//  5. Git never waits for a person: it has no editor, no prompt and a time limit.
//  6. Reading the state of a repository starts no process, unless its refs are packed or
//     not stored as files.
//
// The only programs that run are git and those that the person's configuration makes it
// run: hooks, filters and the signer. There is no file system monitor and no background
// maintenance. If a hook or a signer hangs, git is terminated with it.
//
// The package does not lock. The caller holds the engine's lock on .git, which orders the
// commits of Lockkeeper but not those of people. To avoid their commands, the package waits
// for git's own index.lock: for a while in each operation, without a limit in AwaitIdle.
//
// Git leaves three races with people:
//
//   - A person can begin an operation between the check and the commit. Committed.Branch
//     says where the commit went. If a rebase that began at that moment is aborted, it drops
//     the commit and restores the old files.
//   - git commit with paths reads the index just before it locks it. What a person stages in
//     between is no longer staged, but is still in the work tree.
//   - A message that git keeps for the person's next commit (after git merge --squash or git
//     cherry-pick --no-commit) is used up by any commit.
//
// Git compares each path with each file it knows. So a commit of a few thousand paths takes
// seconds, and one of tens of thousands may exceed the time limit.
//
// The package needs git 2.31 or later.
//
// Goroutines: none outlives a call.
package git
