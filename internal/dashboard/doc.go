// Package dashboard shows a codebase to a person in a browser, and lets them act on it:
// HTML pages made on the server, each the answer to one question, with what package view
// knows; and forms, each one act of package acts.
//
//	GET  /…        a page. Asked by the page itself (HX-Request) it is the inner part alone
//	POST /do/ACT   an act, answered with what happened
//	GET  /assets/… what a browser needs, embedded
//
// live.js follows /events and asks for the parts anew that an event is about; keys.js
// presses what carries a key. Without scripts pages are links and plain forms.
//
// Invariants:
//
//  1. Nothing that is shown can become code: texts go through html/template as text, no
//     page has a script, a style or a handler in it, and characters that play with how
//     text is read are shown as what they are (legible).
//  2. A GET changes nothing but a cookie of the browser that asks.
//  3. An act is done for the person that asked (access.Who), if their role is enough. Every
//     form that is shown has a key of its own, by which the server does it once at most.
//  4. An answer carries the version of what it was an answer to, so whoever decides on
//     something that has changed is told so.
//  5. Every act is answered in the page with what happened, also when it was refused.
//  6. Every time is shown with its age and as what the clock said.
//
// Who may reach it at all, from where and how often is the server's to say: it is mounted
// behind that. It starts no goroutines.
package dashboard
