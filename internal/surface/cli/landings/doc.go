// Package landings has the commands that write through the gate, undo landings, and land
// kept changes.
package landings
