// Package process knows processes: who they are, whether they live, and how to
// run a command so that nothing of it outlives its supervisor unseen.
//
// Invariants:
//
//  1. A process is a host, a boot, a PID namespace, a number and a start time;
//     a later process with the same number is never taken for it.
//  2. Life is judged only inside the same boot and PID namespace. A host that
//     was started again has killed everything; anything else that cannot be
//     seen is unknown, never dead.
//  3. A process is killed only through a handle (pidfd) whose identity was
//     checked after it was opened, or through a process group whose number is
//     pinned by its unreaped leader. A reused number is never hit.
//  4. The caller, its ancestors and process 1 are never killed. Where one of
//     them carries the mark of a grant, EndLeftovers fails and names it.
//  5. When Run returns without a *LeftoversError, nothing of the command's tree
//     is left running, and no adopted zombie remains.
//  6. Only Run starts children outside the program's own process group. Run
//     relies on it to tell children it adopted from children others started.
//
// What belongs to a grant: every process whose environment carries
// LOCKKEEPER_GRANT=<id>, every member of the recorded process group as long as
// one member carries that mark (a reused group number has none), and all
// descendants of these. So a process that changed its group or session is
// found, and one that dropped its environment is found while its parent or its
// group shows where it came from. Inside Run more is known: the group is
// certain, and orphans are adopted by the supervisor.
//
// What stays open after a supervisor was killed: a process that dropped its
// environment, left its group and lost its parent is tied to the grant by
// nothing. Run passes SIGKILL at the supervisor's death to the command itself;
// its descendants go with EndLeftovers.
//
// Goroutines: Exited owns one per watched process, which ends with the process
// or the context; Run waits for its own before it returns. The one package
// variable mirrors an attribute that the kernel keeps per process (the child
// subreaper).
//
// Outside Linux the package compiles, and judges nothing: life is unknown, and
// Run is a plain run without promises about descendants.
package process
