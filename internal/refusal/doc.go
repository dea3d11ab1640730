// Package refusal has the words in which an agent or a person is told that something may
// not be written. They are the same on every surface, and fixed: models learn them, and
// people recognise them.
//
//	REFUSED app/models/user.rb: held by otter (pts/3) "rate-limit login", 4 min, last write 40 s ago
//	Do not retry; do not write it by shell. You will be told when it is free (ticket 18).
//	  free now: app/views/users/*, test/models/user_test.rb
//	next: lockkeeper why app/models/user.rb | lockkeeper defer app/models/user.rb < patch
//
// Invariants:
//
//  1. The first line says what and why, the second what to do instead, the last one how to
//     go on. A refusal always leaves a way to go.
//  2. What others chose (names, prompts, paths) stays on its line: it can add no line of its
//     own and no escape sequence.
//
// The package is pure.
package refusal
