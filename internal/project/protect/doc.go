// Package protect owns the list of files that agents never write. The gate, the HTTP
// interface, MCP, the hooks of interactive agents and deferred patches all ask it.
//
//	class      what                                                       who changes it
//	Git        .git at any depth, git directories by any name, their      git
//	           configuration files, also included ones
//	Hooks      hook directories (core.hooksPath), and files by which      a person
//	           agents, editors, shells and hook managers start programs
//	           without being invoked
//	Own        .lockkeeper at any depth, lockkeeper.yaml, the locks file  Lockkeeper, a person
//	Documents  the documents of flows                                     the flow, people by `decide`
//
// Invariants:
//
//  1. A file is protected under every name that leads to it: through links in the path that
//     is asked for or in the protected path, and in upper or lower case.
//  2. A file is protected whether it exists or not. A file that would turn its directory
//     into a git directory is protected, too.
//  3. Where several settings could apply, all of them do. Settings from the environment add
//     to the list and never shorten it, because any process can set its own environment.
//
// Lockkeeper itself writes its files and documents without asking the list. The package
// reads the disk, changes nothing and starts no goroutines. A List may be used
// concurrently; a Checker, which caches what it reads for one operation, may not.
package protect
