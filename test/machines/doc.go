// Package machines tests Lockkeeper on several machines with a broken network between them.
//
// A machine is a process with its own network, PID, mount, host name and IPC namespaces, its own
// home directory, machine id and boot id, and its own clone. PostgreSQL runs on machines of its own,
// and so does the git server. A machine has one network card. The test process forwards the packets
// between the cards, so it can delay, drop and lose them, in one direction as well. `go test` starts the
// test process in namespaces of its own, on a disk in memory. So the kernel ends and removes everything
// when the test process ends, however it ends.
//
// The checker does not trust the product. A command that runs under a lock takes a lock of the
// kernel on a file that all machines share. If another command still has that lock, the grants
// overlap, whatever the store says.
//
// The wall clock of a machine can differ from that of the others: its programs replace the
// function of the kernel's shared library that reads the clock. Only the program under test does
// this. File times, PostgreSQL and git keep the clock of the host.
//
// The tests need root, Linux and PostgreSQL: `make test-machines`.
package machines
