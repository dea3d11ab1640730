// Package gitcmd runs git for programs that read its output. It is the only package that
// starts git.
//
// People set variables of git for themselves, and git sets some for its hooks. Plain and
// Outside remove those that change git's output or its repository. Variables that express a
// person's wishes for their own commits stay: the author, the configuration, the signing key.
//
// The package has no goroutines that outlive a call.
package gitcmd
