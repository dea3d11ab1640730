// Package api is the server of a codebase: the HTTP API, the event stream, metrics, health,
// and the layers that protect them. The dashboard, the Model Context Protocol and git-lfs
// are mounted behind the same layers. A handler decodes a request, calls internal/surface/acts
// or internal/surface/view, and encodes the result. It makes no decisions.
//
//	request ─▶ path ─▶ host ─▶ who ─▶ origin ─▶ role ─▶ query ─▶ room ─▶ body ─▶ once ─▶ handler
//
// The layer room limits how many requests of a kind run at once, and once answers a repeated
// request from memory. Authentication (who) comes before room, so unauthenticated or slow
// clients cannot lock others out.
//
// Invariants:
//
//  1. One table lists every route (routes in route.go, and the tables it includes). The mux and the
//     OpenAPI document are built from it.
//  2. Every route needs a token or a session, including GET and the event stream, unless
//     the table marks it as open. A refused request reaches no handler.
//  3. Only requests for a known host name are answered. So a page of another site cannot
//     reach the server through a DNS name that points here.
//  4. GET and HEAD change nothing. A change that is authenticated by a session cookie must
//     come from a page of the same origin.
//  5. A slow client delays no other. An event stream has no queue of its own, at most one
//     page is in flight, and a write that takes too long ends it.
//  6. Everything is bounded: connections, concurrent requests, streams, bodies, headers,
//     read and write times, stored answers to repeated requests, login attempts.
//  7. A POST with an idempotency key runs once. The same key and body get the same answer;
//     the same key with another body is refused. An act continues if its client
//     disconnects; a wait for locks does not.
//  8. After login, no secret is in a URL, a log or an error.
//  9. Every error is one JSON object with a code, a message and the facts.
//
// Goroutines: a Server owns those of net/http, one that updates the metrics and, if
// configured, one that calls the webhook. Close ends them all and waits.
package api
