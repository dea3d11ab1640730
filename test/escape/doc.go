// Package escape has an agent try to get out of its sandbox, in a real run.
//
// TestEscape starts the program, a project, servers and things worth stealing, and runs a
// plan whose agent is the test's own program. The agent makes every attempt of the table
// and reports which succeeded, in the one file that its task may change. It does so
//
//   - under each level of the sandbox that this machine has: a launcher takes Landlock, or
//     namespaces, from the program with a seccomp filter, so nothing in the program can be
//     told to use less than it has;
//   - as root, and as an ordinary user;
//   - with the sandbox switched off, where every attempt must succeed: one that fails there
//     proves nothing.
//
// TestOwnDirectory runs programs with the names of the known agents at the same levels. They
// leave what they can for the person's next session, of which only a renewed login may arrive.
//
// A row says where its attempt is not held (attempt.open). The test fails if an attempt
// succeeds elsewhere, and also if it fails where the row says that it succeeds: then the
// row and docs/safety.md must be corrected.
package escape
