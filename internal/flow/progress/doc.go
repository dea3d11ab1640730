// Package progress computes the state of every unit and batch of a flow, and stores what people
// decide. It applies the rules of a flow to the documents in a directory of documents.
//
//	<unit>/
//	  analysis.json … batches.json    the documents of the unit's phases
//	  decisions.draft.json            decisions while some are missing or being changed
//	  batches.draft.json              batches that follow up gaps and wait for approval
//	  notes.json                      notes from people to agents
//	  failures.json                   failures of several batches that a run asked about
//	  methods.json                    topics that the Messages API should answer
//	  batches/<id>/
//	    apply.json … landed.json      the documents of the batch's phases
//	    started.json                  work on this definition of the batch has begun
//	  earlier/<n>/                    replaced documents; also in a batch's folder
//
// A Tracker reads and writes these files. A Unit and a Batch are what it read. A Decision
// is a question that waits for a person, and a Ref names it.
//
// Invariants:
//
//  1. A Tracker remembers nothing between calls. The state of a unit follows from its
//     files alone, so every process sees the same state, and a crash needs no repair.
//  2. The first phase whose document is missing, malformed or outdated is the phase the
//     unit is in. Later documents do not count. A document is outdated if it was made
//     from something else: the audit must cover exactly the synthesized items, decisions
//     the audited items, a plan the decided items, an applied change the digest of its
//     batch, and a review the files that were verified.
//  3. Every document is checked before it is written. A document is refused until the
//     documents before it count. Writing the same document twice changes nothing.
//  4. A kernel lock on the unit's folder serializes changes across processes, and each
//     write compares what it replaces with what was read. A person's answer names the
//     version they saw (IfUnchanged). If the question changed since, the answer is
//     refused with *StaleError and nothing is written.
//  5. A crash between two writes leaves the old state, or one that Recover or a repeated
//     call completes. A draft of decisions overrides decisions.json. decisions.json is
//     written first, then the lists that later runs read, and the draft is removed last.
//  6. A decision belongs to the words of its item (documents.Normalize), not to its id, so
//     people do not decide again when items are extracted again.
//  7. Nothing is applied without approval. An edit withdraws the approval. After the first
//     Begin a plan cannot be edited, and a new batch needs its own approval. In flows where
//     people write the plan elsewhere, writing it is the approval.
//  8. A batch has no document made from an outdated one: later documents are moved away
//     first, from the last to the first. A review stays, since it names its files, until
//     the batch is applied again.
//  9. What people wrote and what agents were paid for is moved to earlier/ or renamed,
//     never overwritten. The exception is a malformed text of a topic.
//  10. The audit drops an item only if the same item of the same unit was rejected before
//     and was not re-enabled. A similar item is kept and marked.
//
// The package starts no work and locks no code. The store knows which items run and which
// failed. A policy (AutoDecide) decides in the name of the person who chose it.
//
// Goroutines: none outlives a call, with one exception. If the context of a call ends while
// another process holds the lock of a folder, a goroutine waits for the lock and frees it.
package progress
