// Package supervisor lets a confined command talk to the process that runs it. The command
// has no access to the store. It gets a socket and a token in its environment, and two
// requests:
//
//	GET  /grant                     returns what the caller may write, and until when
//	POST /gaps  {"path","reason"}   asks for another path; recorded, never granted
//
// Invariants:
//
//  1. One server serves one run. Its token is known only to the command, and is worthless
//     after Serve returned.
//  2. Connections of other users are closed unread, where the system identifies them
//     (Linux). A request without the token does not reach the Handler.
//  3. Connections, request size, and request time are bounded, and a command can leave 20 records.
//  4. When Serve returns, no request is in progress and the socket is gone.
//
// Errors cross the socket as message and code (*AnswerError).
//
// Goroutines: Serve owns one per connection. The Client keeps no connection open.
package supervisor
