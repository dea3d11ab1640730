// Package refusal formats the message that tells an agent or a person that a write was
// refused. The format is the same on every surface and fixed: models learn it, and people
// recognize it.
//
//	REFUSED app/models/user.rb: held by otter (pts/3) "rate-limit login", 4 min, last write 40 s ago
//	Do not retry; do not write it by shell. You will be told when it is free (ticket 18).
//	  free now: app/views/users/*, test/models/user_test.rb
//	next: lockkeeper why app/models/user.rb | lockkeeper defer app/models/user.rb < patch
//
// Invariants:
//
//  1. The first line says what was refused and why, the second what to do instead, and the
//     last which command continues. A refusal always offers a way to continue.
//  2. Text from others (names, prompts, paths) stays on its line: it cannot add lines or
//     escape sequences.
//
// The package is pure and starts no goroutines.
package refusal
