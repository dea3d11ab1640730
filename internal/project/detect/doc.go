// Package detect looks at the tree of a codebase that has no configuration yet, and
// proposes one: the paths that agents may change, the command that runs all tests,
// additional checks, and the agent.
//
// What it knows about a language or framework is one entry of the table stacks. A
// project can have several. A command that the project declares itself, such as the
// target test of a Makefile, is preferred to those of the table.
//
// Invariants:
//
//  1. It reads names, and the first part of some manifests. It changes nothing and
//     runs no program but git, which lists the files.
//  2. It looks at a bounded number of files, so large trees are as fast as small ones.
//  3. It proposes a command only if its program is installed. Others are notes.
//  4. The proposal is a valid configuration for every tree.
package detect
