// Package web serves the dashboard: HTML pages rendered on the server, each for one
// question, with data from package view; and forms, each for one act of package acts.
//
//	GET  /…        a page; requests by the page's own script (Lockkeeper-Part) get only what changed in its inner part
//	POST /do/ACT   an act; the response says what happened
//	GET  /assets/… embedded scripts and styles
//
//	pages.go, templates/           the table of the pages, with their data; a template for each
//	now.go, board.go, decide.go …  pages whose data needs more code
//	act.go, answers.go, steer.go   the forms and their acts
//	page.go, dashboard.go          what all pages share; the routes
//	part.go                        what changed in a page since the browser asked last (package patch)
//	functions.go, words.go         what templates call
//
// worker.js follows /events for all pages of a browser, and events.js for a page of a browser without
// shared workers. When an event concerns a part of the page, live.js asks what changed in it, and
// morph.js applies that with Idiomorph: it touches only what changed, and never what a person has
// begun to type. acts.js sends forms, keys.js handles keyboard shortcuts. Without scripts, the pages
// are links and plain forms.
//
// A part has the same HTML each time until something changes: keys of forms and ages of times are
// added by the scripts, or by fill for browsers without scripts. Rows of lists have stable ids.
//
// Invariants:
//
//  1. No shown text can become code. All text goes through html/template, no page has
//     inline scripts, styles or handlers, and control and bidirectional characters are
//     shown as escapes (legible).
//  2. A GET changes nothing but a cookie of the requesting browser.
//  3. An act runs as the person who requested it (access.Who), if their role permits it.
//     Every form carries a unique key, with which the server runs the act at most once.
//  4. A form carries the version of what it shows. If that has changed when the form
//     arrives, nothing is done and the person is told what changed.
//  5. Every act reports its result in the page, also when it was refused.
//  6. Every time is shown as an age and as a clock time.
//
// The server that mounts this package authenticates, limits and routes the requests. The
// package starts no goroutines.
package web
