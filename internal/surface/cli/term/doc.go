// Package term is the input and output of commands: streams, terminal, color, tables,
// durations and money, and the escaping of text that others wrote.
//
// Invariants:
//
//  1. Color, cursor movement and shortened text are for terminals only.
//  2. Clean escapes everything that could move the cursor, or hide or reorder text.
//  3. Output remembers the first write that failed, so that commands need not check
//     each line.
package term
