// Package escape tests in a real run that an agent cannot leave its sandbox.
//
// TestEscape starts a project, servers and processes with secrets, and runs a plan. The agent of
// the plan is the test's own program. It makes every attempt of a table and writes which ones
// succeeded to the one file that its task may change. The test runs
//
//   - with each level of the sandbox that this machine supports. To get a lower level, a launcher
//     blocks the system calls of Landlock or of namespaces with a seccomp filter, because the
//     program itself has no setting for this;
//   - as root, and as an ordinary user;
//   - with the sandbox switched off. There every attempt must succeed, because an attempt that
//     fails without a sandbox proves nothing.
//
// Other tasks of the plan leave files, links, set-user-ID programs and a daemon. TestEscape checks
// from outside what became of them.
//
// TestOwnDirectory runs programs with the names of the known agents at the same levels. They
// write to the directories that the person's next session reads. Only a renewed login may arrive
// there.
//
// The field attempt.open says at which levels an attempt succeeds. The test fails if an attempt
// succeeds at another level, and also if it fails where attempt.open says that it succeeds. Then
// correct attempt.open and docs/safety.md.
package escape
