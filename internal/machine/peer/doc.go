// Package peer tells whether the other end of a TCP connection is a process in one of
// this program's sandboxes.
//
// The sandbox marks its process before the command starts (Mark). The server looks for the
// mark on every process that holds the other end of a connection (Finder).
//
// The mark is a hard limit on file locks (RLIMIT_LOCKS) of 2^20 or less. Linux has not
// enforced that limit since 2.4.25, so lowering it changes nothing else. It has what a mark
// needs:
//
//   - Children and executed programs inherit it. A double fork, a new session, an empty
//     environment, a rewritten title and the death of the supervisor do not remove it.
//   - Raising it needs CAP_SYS_RESOURCE in the initial user namespace, which no sandbox
//     leaves to a command. A user namespace of its own does not give it.
//   - It works without namespaces, where Landlock alone leaves no trace in /proc.
//   - Containers, browsers in a snap or a flatpak, and other sandboxes do not set it.
//
// Invariants:
//
//  1. A process is marked if its limit is at most 2^20 and below that of the process that
//     asks. So a server that itself runs in a sandbox admits its neighbors and refuses what
//     it confines further: each Mark lowers the limit below the one it finds.
//  2. A connection is refused if any of the processes that hold it is marked.
//  3. A connection whose holder cannot be found is refused, unless the holder belongs to
//     another user whose processes this process may not inspect. The holder cannot be
//     found if it closed the socket, hides its descriptors, keeps the socket in io_uring
//     alone, or has sent it over a unix socket.
//  4. A connection from another machine is admitted: no sandbox of this machine has it.
//
// A scan of /proc takes some milliseconds. Connections that arrive during a scan share the
// next one, so only one scan runs at a time however many connections arrive.
//
// Limits: a marked process can use a proxy that runs outside of every sandbox.
package peer
