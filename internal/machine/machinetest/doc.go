// Package machinetest gives tests what they need from a machine, such as a disk of their
// own. If the machine lacks something, a test that runs as root fails, because `make test`
// can set everything up as root. For other users the test is skipped.
package machinetest
