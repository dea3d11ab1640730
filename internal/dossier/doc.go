// Package dossier says where every unit and every batch of a flow stands, and carries out
// what people decide. It joins the files of a sidecar with the rules of a flow.
//
//	<unit>/
//	  analysis.json … batches.json    what the phases left, as the flow has it
//	  decisions.draft.json            decisions, while some are missing or being changed
//	  batches.draft.json              batches that follow up gaps and wait for approval
//	  notes.json                      what people want agents to know
//	  batches/<id>/
//	    apply.json … landed.json      what the phases of the batch left
//	    started.json                  that work on its definition has begun
//	  earlier/<n>/                    documents that were done anew; also in a batch's folder
//
// Invariants:
//
//  1. Nothing is remembered between calls. Where a unit stands follows from its files
//     alone, so every process sees the same, and after a crash nothing has to be repaired
//     before it is seen.
//  2. The first phase whose output is missing, malformed, or not made from what is there
//     now decides; nothing behind it counts. An audit is of exactly the items that were
//     synthesized, decisions are on exactly the items that were audited, a plan does
//     exactly what was decided, what was applied has the hash of its definition, a review
//     is of the files that were verified. Of analysis, extract and synthesis, which agents
//     make, one that is made anew is taken for equal, except that the synthesis has to
//     speak of each item of the extract.
//  3. Nothing is written that would not be read: every document is checked first. A put
//     is refused while the output before it does not count. The same put once more
//     changes nothing.
//  4. Acts on one unit take turns, in whichever process, by a lock of the kernel on its
//     folder. Each write also compares what it replaces with what was read. A person who
//     decides says what they saw, by the version of a gate (Seeing) or what an item was
//     decided to be; if it is something else by now they are told what, and nothing is
//     changed. So nobody's answer is lost to another one's.
//  5. Whoever dies between two writes of an act leaves either what was, or what Settle, or
//     the same act once more, brings to its end. While there is a draft of decisions it is
//     the truth; decisions.json is written before the draft goes, and what later runs are
//     to know is told in between. Decisions that are there without a draft were told.
//  6. A decision belongs to the words of its item (sidecar.Normalise), not to its id: when
//     items are made anew nobody has to decide the same again. What later runs know is
//     restored when a decision is taken back.
//  7. Nothing is applied that nobody approved. An edit takes the approval back; from the
//     first Begin on there are no edits, and a batch that is added waits for approval on
//     its own and disturbs none that runs. Where people write the plan elsewhere (tasks,
//     screens) that is their approval, and a plan that they change replaces this one.
//  8. Behind a document of a batch there is never one that was not made from it: what comes
//     later is moved away first, the last before the others. A review stays, since it
//     names its files; it does not outlive an apply.
//  9. What people wrote and what agents were paid for is moved aside (earlier/, or under
//     another name if it is malformed), never overwritten. The exception is a malformed
//     text of a topic, which a new answer replaces.
//
// What it does not do: it runs nothing, locks no code and does not know what is running.
// Who holds a batch, and which item failed with which error, is in the store. A policy
// (AutoDecide) is a person's word given in advance, and is recorded under their name.
//
// Goroutines: none outlives a call, except that one whose context ends while another
// process has the turn waits in the kernel until that one gives it on.
package dossier
