// Package supervisor lets a confined command speak to whoever runs it: what it
// may write and until when, and that it wants to change something else. The
// command sees no store; it has a socket and a token in its environment, and two
// things to say:
//
//	GET  /grant                     what the caller may write, and until when
//	POST /gaps  {"path","reason"}   asks for more: recorded, never a wider grant
//
// Invariants:
//
//  1. One server speaks for one run. Its token is made with it, told to nobody
//     but the command, and worth nothing once Serve has returned.
//  2. A connection of another user is closed unread, where the system tells
//     whose it is (Linux); a request without the token reaches no Desk.
//  3. Whoever calls costs a bounded amount: connections at once, bytes and
//     seconds of a request, records of a run.
//  4. When Serve returns no request is under way and the socket is gone.
//
// Errors cross the socket as their message and code (*AnswerError).
//
// Goroutines: Serve owns those of its connections. The Client keeps no
// connection open.
package supervisor
