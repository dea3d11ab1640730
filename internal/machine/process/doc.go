// Package process identifies processes, decides whether they are alive, and runs commands so
// that no process of a command outlives its supervisor unnoticed.
//
// Invariants:
//
//  1. A process is identified by host, boot, PID namespace, number and start time. A
//     later process with the same number is never mistaken for it.
//  2. Liveness is decided inside the same boot and PID namespace. Elsewhere only a proof
//     counts: a locked file (presence), the end of its namespace (namespaceGone), or a restart of this
//     machine (restarted). A process without a proof is unknown, never dead.
//  3. A process is killed only through a handle (pidfd) whose identity was
//     checked after it was opened, or through a process group whose number is
//     pinned by its unreaped leader. A reused number is never hit.
//  4. The caller, its ancestors and process 1 are never killed. If one of them carries
//     the mark of a grant, EndLeftovers fails and names it.
//  5. When Run returns without a *LeftoversError, no process of the command's tree is
//     running, and no adopted zombie remains.
//  6. Only Run starts children outside the program's own process group. Run uses this to
//     tell adopted children from children that other code started.
//  7. A command starts only after its keeper was recorded (Command.Started).
//  8. After EndLeftovers or EndWork returned nil, no command starts under the record that
//     they were given: the keeper is gone too, or its control group is. Without this, a
//     keeper that was still starting when its supervisor died could start the command.
//
// Each command has a keeper, which is this program started again:
//
//	supervisor ─▶ keeper ─▶ command ─▶ its descendants
//
// The keeper is the reaper of orphans below it (PR_SET_CHILD_SUBREAPER), so a
// daemon that left its parent, session, group and environment becomes its child.
// It kills all of its descendants when the command ends or the supervisor dies, and
// exits when it has no child left. If the keeper is killed, the supervisor, which is
// a reaper of orphans too, inherits its children and ends them. If both are killed,
// the next holder ends what is left (EndLeftovers).
//
// These processes belong to a grant, in the order of how hard it is to leave:
//
//   - all processes in the command's control group, where the user may make one
//     (version 2: root, and users under systemd where their processes run in a
//     group that is theirs)
//   - the recorded keeper, known by its number and start time, and all of its descendants
//   - all processes with the keeper's limit mark (see limitMark)
//   - all processes whose environment carries LOCKKEEPER_GRANT=<id>, and their
//     descendants
//
// A process that has lowered the limit with its mark is not killed, because nothing
// proves which grant it belongs to. EndLeftovers fails and names it (refuseLowered).
//
// Some work still escapes: what an outside daemon does on request (docker, systemd, at,
// cron). If there is no control group and supervisor and keeper are both killed, two more
// kinds of processes escape: a process of root that resets its limit for resident memory,
// and a process that sets it to the mark of another keeper.
//
// Goroutines: Exited owns one per watched process, which ends with the process
// or the context; Run waits for its own before it returns. The package variable reaper
// mirrors an attribute that the kernel has per process (the child subreaper).
package process
