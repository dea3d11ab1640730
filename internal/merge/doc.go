// Package merge merges two changes of one text by lines.
//
//	base ──▶ kept     the change to merge
//	   └───▶ now      what became of the text meanwhile
//
// Invariants:
//
//  1. A line that only one side changed becomes what that side made of it. A line that neither
//     changed stays.
//  2. If both sides changed the same lines, or lines next to each other, in different ways, the
//     result is a conflict. Nothing of either side is lost: the merged text has both.
//  3. Without a base every difference is a conflict, because nothing says which side is newer.
package merge
