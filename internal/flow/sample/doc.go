// Package sample has a small application for demonstrations, tests and benchmarks: a blog
// in the layout of Rails, and a script of agent calls that package scripted plays in all
// three flows. So a whole run needs no model, no network and no Ruby. Large makes such an
// application of any size.
//
// Invariants:
//
//  1. The output depends only on the arguments, not on time or chance.
//  2. The application is correct: its own checks (bin/check, bin/ci), which need only sh
//     and awk, accept it. They fail if a method that a controller uses is renamed in a
//     concern.
//  3. The edits of the script apply in any order of batches. The application is correct
//     after each batch, once the script's fix for that batch was applied.
//  4. Existing files are never overwritten: the directory must be empty or missing.
//
// The top of script/controllers.yaml describes what happens in the flow "controllers".
package sample
