// Package boot tells one run of a kernel from another.
//
// The kernel gives each of its runs a random id. A container can be shown another
// id than its host, by a mount over the file in /proc. So equal ids mean the same
// run, and different ids alone mean nothing: they may be two runs, one run seen
// through two files, or two machines. When a run started is known without that
// file, by two clocks of the kernel.
package boot
