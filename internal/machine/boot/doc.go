// Package boot tells one run of a kernel from another.
//
// The kernel gives each of its runs a random id. A container can be shown another
// id than its host, by a mount over the file in /proc. So equal ids mean the same
// run, but different ids alone mean nothing: they may be two runs, one run seen
// through two files, or two machines. The start time of a run comes from two
// kernel clocks and does not depend on that file.
package boot
