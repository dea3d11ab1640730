// Package flow says what a flow is: its phases, the documents that they leave, what
// agents are asked, and the rules that hold between them. It is data and pure functions.
//
// Invariants:
//
//  1. The package changes nothing: it reads from an fs.FS or from bytes it is given, and
//     whatever it returns is the caller's own. The same input gives the same output, in
//     the same order.
//  2. A document that Check accepts can be read into its type without loss: it has no
//     unknown member, its ids are unique, what it refers to within itself exists, and no
//     write target is a directory or lies outside of the root.
//  3. Every phase that an agent has a part in names a prompt and a schema of its answer,
//     and both exist. A schema of an answer is complete in itself.
//  4. The first line of a prompt is "# <phase> <name>", whatever template made the rest,
//     and text that a model or a program wrote stands between fences that it cannot end.
//  5. Write targets are gathered by Targets alone, whoever declared them.
//  6. The batches of a plan stand in an order in which each comes behind those it is
//     after. A plan that was edited is nobody's approved plan.
//  7. An item is dropped for an earlier decision only if it is the same as the rejected
//     one, in the same controller, and nobody enabled it again. One that is merely alike
//     is kept and marked.
//
// The package has no goroutines and keeps no state.
package flow

//go:generate go test -run TestSchemasArePublished -update
