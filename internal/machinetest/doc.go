// Package machinetest is what tests need of a machine: disks of their own, and one answer to
// what becomes of a test where the machine has not got what it needs. As root, as which
// `make test` can do everything, such a test fails, so that nothing is left unproved in
// silence; for everybody else it is skipped.
package machinetest
