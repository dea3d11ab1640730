// Package gitenv prepares the environment of a git that a program runs and whose answers it
// reads. People set variables of git for themselves, and git sets some for its hooks. A program
// needs the same answers with and without them.
//
// Variables that carry a person's wishes for their own commits stay: who the author is, which
// configuration counts, how to sign.
package gitenv
