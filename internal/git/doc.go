// Package git does git's acts on the shared repository that a root is in: it says
// where the repository stands, waits until a person's rebase or checkout is over,
// switches branches, and commits exactly the files of one batch.
//
// Invariants:
//
//  1. A commit holds the given paths as they are in the work tree, and nothing else.
//     What a person has staged or edited besides stays staged or edited as it was. Of
//     the given paths themselves the work tree counts, also where something else was
//     staged.
//  2. Paths are bytes. None of them is taken for an option, a pattern or a spelling
//     of something else, and none leads out of the root.
//  3. Nothing is forced: no work is overwritten, no ignored file added, no lock of git
//     removed, no hook passed over. What git or a hook refuses is told.
//  4. A commit that fails leaves the index as it was. Only a death in the middle can
//     leave new files behind as "to be added later" (git add -N), which the next try
//     commits, and which are no content.
//  5. Git never waits for a person here: no editor, no prompt, and a bound on the time.
//  6. No process is started to see where the repository stands, unless its refs are
//     packed or kept in another form than files.
//
// Programs that run are git, what the person's own configuration makes git run
// (hooks, filters, the signer): no file system monitor, no upkeep in the background. A
// hook or a signer that hangs is given up with its git, which ends what it can.
//
// The package does not lock. Whoever uses it holds the engine's lock on .git; that
// orders the commits of Lockkeeper, and not what people do with git. For them git's
// own index.lock counts: it is waited for, a little in each act and without end in
// Settled. Two things remain that git does not order. A person can begin something
// between the look at the repository and the commit: Committed.Branch says where the
// commit went, and when a rebase that began in the same moment is aborted, it drops the
// commit, and the files are again what they were before it. And git commit with paths
// reads the index just before it locks it: what is staged in between is not
// staged any more, and still in the work tree. A message that git
// keeps for the person's next commit (after git merge --squash or git cherry-pick
// --no-commit) is used up by any commit, also by one of these.
//
// Git compares each path with each file it knows, so a commit of a few thousand paths
// takes seconds, and one of tens of thousands may take longer than it is given.
//
// Git 2.31 or later is needed.
//
// Goroutines: none outlives a call.
package git
