// Package flow describes flows as data: their phases, the documents that the phases write,
// the prompts for agents, and the rules that documents must meet.
//
//	flows.go, controllers.go, screens.go, tasks.go   what a flow is, and one file for each
//	phase.go                                         what a phase is, and the phases of a batch
//	document.go, schema.go, check.go                 documents, their schemas and rules
//	discover.go, manifest.go, task.go                where units come from
//	prompt.go, prompts/                              what agents are asked
//
// To add a flow, write one file with a function that returns a Flow and add it to All. To
// add a phase, add an entry to the flow's table: one of the existing steps, its document, its
// rank in the queue, its settings and a new type of answer. Also add its prompt in prompts/. The
// scripted agent needs an answer in sample/script/rest.yaml, except to a prompt "fix_<name>".
//
// Invariants:
//
//  1. The package changes nothing. It reads from an fs.FS or from bytes it is given, and
//     the same input gives the same output in the same order.
//  2. Flows differ only in the fields of Flow and Phase. No other package compares the
//     name of a flow with a constant.
//  3. A document that Check accepts can be read into its type without loss: it has no
//     unknown member, its ids are unique, its references resolve, and every write target
//     is a file inside the root.
//  4. A phase with an agent names a prompt and the schema of the answer. Both exist, and
//     the schema refers to no other.
//  5. The first line of a prompt is "# <phase> <name>". Text that a model or a program
//     wrote is fenced, and cannot end its fence.
//  6. Targets is the only function that collects write targets.
//  7. Every batch of a plan comes after the batches named in its After. An edited plan is
//     not approved.
//
// The package has no goroutines and keeps no state.
package flow

//go:generate go test -run TestSchemasArePublished -update
