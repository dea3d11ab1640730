// Package term is how commands talk to people and programs: the streams, the terminal,
// color, tables, durations and money, and the escaping of text from elsewhere.
//
// Invariants:
//
//  1. Color, cursor movement and shortened text are for terminals only.
//  2. Clean escapes whatever could move the cursor, hide or reorder text.
//  3. Output remembers the first write that failed, so that no command must check
//     each line.
package term
