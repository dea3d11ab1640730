// Package httpapi is the server of a codebase: the HTTP API, the stream of events, metrics
// and health, and the layers that keep out whoever should not be let in. The dashboard, the
// Model Context Protocol and git-lfs are mounted behind the same layers. A handler decodes,
// asks internal/acts or internal/view, and encodes; it decides nothing.
//
//	request ─▶ path ─▶ host ─▶ who ─▶ origin ─▶ role ─▶ query ─▶ room ─▶ body ─▶ once ─▶ handler
//
// What strangers send comes before they take room: who sends slowly keeps no other out.
//
// Invariants:
//
//  1. One table says what can be asked (routes.go and those that it lists). The mux and the
//     OpenAPI document are made from it, so neither knows what the other does not.
//  2. Every route but the few that the table calls open needs a token or a session, also
//     GET and the stream. A request that is refused has reached no handler.
//  3. Whatever the name of the server is said to be, only names that it is known by are
//     answered: a page of somebody else's whose name was pointed here gets nothing.
//  4. GET and HEAD change nothing. What changes something and comes with a session, which
//     browsers send by themselves, must come from a page of this very origin.
//  5. Whoever is slow keeps nobody waiting: a stream of events has no queue of its own, one
//     page at most is on its way, and a write that takes too long ends it.
//  6. Everything is bounded: connections, requests at once, streams, bodies, headers, the
//     time to read and to write, answers kept for repeated requests, attempts to log in.
//  7. A POST that carries a key is done once: the same key with the same body gets the same
//     answer, with another body it is refused. An act goes on to its end also when whoever
//     asked is gone; a wait for locks does not.
//  8. No secret is in a URL after login, in a log or in an error.
//  9. Every error is one JSON object with a code of one table, a sentence and the facts.
//
// Goroutines: a Server owns those of net/http, one that feeds the metrics and, where one is
// configured, one that calls the webhook. Close ends them all and waits.
package httpapi
