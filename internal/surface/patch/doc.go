// Package patch finds what changed between two renderings of the same part of a page.
//
// A part is HTML. Each element with an id is compared on its own. The answer lists the changed ones,
// each with its new HTML, in which the elements below it that did not change are only named. So a
// part with hundreds of rows costs as much as the rows that changed.
//
//	shown ──▶ Memory.Find ──▶ Part.Since(tree) ──▶ changes, or everything if the tree is unknown
package patch
