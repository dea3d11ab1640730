// Package sample has an application to try things on, and what agents do to it: a small
// blog in the layout of Rails, with a script that package scripted plays in all three
// flows. So a whole run needs no model, no network and no Ruby. Large makes such an
// application of any size.
//
// Invariants:
//
//  1. What is written depends on nothing but the arguments: no time, no chance.
//  2. The application is right as it is: its own checks (bin/check, bin/ci), which need
//     sh and awk alone, accept it, and refuse it when a method that a controller uses is
//     renamed in a concern.
//  3. The edits of the script fit in whatever order batches land, and the application
//     is right after each batch that was mended as the script says.
//  4. Nothing is written over: the directory must be empty, or not be there.
//
// What happens in the flow "controllers" is told at the top of script/controllers.yaml.
package sample
