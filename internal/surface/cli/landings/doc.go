// Package landings has the commands that write through the gate, undo landings, and land
// what could not land before.
package landings
