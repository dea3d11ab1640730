// Command bench measures Lockkeeper against its peers and prints one line per
// comparison: ours, theirs, the ratio, the target, and whether it is met.
//
//	cd bench && ../scripts/postgres run -- go run . [-run REGEXP] [-rounds N] [-json] [-write]
//
// Invariants:
//
//  1. Both sides of a comparison are measured in the same run, in short slices
//     that alternate, so that other load on the machine affects both.
//  2. A figure is the median over the turns of all rounds; a ratio is the median
//     of the ratios of neighboring slices, not the ratio of the best slices.
//  3. A time is the time that the caller waits.
//  4. Both sides write to the same disk with the same durability.
//  5. A missed target is printed as missed. The exit code does not depend on it.
//  6. A comparison that could not be measured says why.
//
// The bench is a separate module, so that the libraries of the peers never become
// dependencies of the product. A step that fails ends its comparison (see failure). The
// bench starts processes of its own executable (the first argument is then "as") and waits
// for all of them.
package main
