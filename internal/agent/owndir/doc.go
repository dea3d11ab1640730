// Package owndir gives each call of an agent a private copy of the directory of its
// program, such as ~/.claude. The program keeps its login, settings and sessions there.
//
// A session of a person obeys what it finds in that directory: hooks, servers, instructions,
// memories, transcripts to resume. So nothing that a call leaves in its copy gets into the
// person's directory, with one exception: a login that the call renewed. Programs renew
// their login while they work, and the old one may be invalid from then on.
//
// Open makes the copy. It copies the login and the settings, and links large files and nested
// directories, which the sandbox shows read-only. An environment variable of the program names
// the copy, so it is used at every level of the sandbox, and without one. Close saves a
// renewed login a last time. The caller removes the rest.
//
// Invariants:
//
//  1. Of the person's directory only the login is ever written, as a whole and by a rename,
//     and only if it was there when the call began.
//  2. A login from a copy is saved if it is a regular file of at most 1 MiB with a JSON
//     object that has a refresh token, as the login at the beginning had. A program that was
//     logged out, or that has an API key, changes nothing.
//  3. A login that changed in the person's directory since the copy last had it is never
//     overwritten. The copy gets it instead.
//  4. No link in a copy is followed out of it.
//
// Several calls may renew the login at about the same time, and with a person's session.
// Refresh tokens may be used once, so each copy follows the person's login within
// milliseconds, in both directions: programs look at the file again before they use a
// refresh token, and after one was refused. If two renewals succeed all the same, both
// logins are valid: the first one to arrive is saved, and the other copy gets it. If the
// program of the other copy continues with its own login, its next renewal replaces the saved
// one. A file lock that no agent can reach orders the writers of all runs of the user.
//
// A Copy owns one goroutine, which Close ends.
package owndir
