// Package process knows processes: who they are, whether they live, and how to
// run a command so that nothing of it outlives its supervisor unseen.
//
// Invariants:
//
//  1. A process is a host, a boot, a PID namespace, a number and a start time;
//     a later process with the same number is never taken for it.
//  2. Life is judged inside the same boot and PID namespace. Elsewhere only a proof
//     counts: a locked file (presence), or that this machine was started again
//     (restart). Anything else that cannot be seen is unknown, never dead.
//  3. A process is killed only through a handle (pidfd) whose identity was
//     checked after it was opened, or through a process group whose number is
//     pinned by its unreaped leader. A reused number is never hit.
//  4. The caller, its ancestors and process 1 are never killed. Where one of
//     them carries the mark of a grant, EndLeftovers fails and names it.
//  5. When Run returns without a *LeftoversError, nothing of the command's tree
//     is left running, and no adopted zombie remains.
//  6. Only Run starts children outside the program's own process group. Run
//     relies on it to tell children it adopted from children others started.
//  7. A command starts only after it was recorded who keeps it (Command.Started).
//  8. After EndLeftovers or EndWork returned nil, no command starts under the record that
//     they were given: the keeper is gone too, or its control group is. A keeper may have
//     been asked to start a command, and not yet have started up, when its supervisor dies.
//
// Each command has a keeper, which is this program started again:
//
//	supervisor ─▶ keeper ─▶ command ─▶ whatever it starts
//
// The keeper is the reaper of orphans below it (PR_SET_CHILD_SUBREAPER), so a
// daemon that left its parent, session, group and environment becomes its child.
// It kills all of its descendants when the command ends or the supervisor dies, and
// exits when it has no child left. If the keeper is killed, the supervisor, which is
// a reaper of orphans too, inherits its children and ends them. If both are killed,
// the next holder ends what is left (EndLeftovers).
//
// What belongs to a grant, in the order of how hard it is to shed:
//
//   - all processes in the command's control group, where the user may make one
//     (version 2: root, and users under systemd where their processes run in a
//     group that is theirs)
//   - the recorded keeper, known by its number and start time, and all of its descendants
//   - all processes with the keeper's brand (see brand)
//   - all processes whose environment carries LOCKKEEPER_GRANT=<id>, and their
//     descendants
//
// A process that has lowered the limit that is its brand is not killed, because nothing
// proves whose it is. EndLeftovers fails and names it (refuseLowered).
//
// What can still leave: work that a daemon outside does when asked (docker,
// systemd, at, cron); and, where there is no control group and supervisor and keeper
// are both killed, a process of root that resets its limit for resident memory, and one
// that sets it to the brand of another keeper.
//
// Goroutines: Exited owns one per watched process, which ends with the process
// or the context; Run waits for its own before it returns. The one package
// variable mirrors an attribute that the kernel keeps per process (the child
// subreaper).
//
// Outside Linux the package compiles, and judges nothing: life is unknown, and
// Run is a plain run without promises about descendants.
package process
