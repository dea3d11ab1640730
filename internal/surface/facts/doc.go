// Package facts returns the facts of an error, such as the holder and the conflicts of a
// refused request, by their names in JSON. The code and the message of an error are not
// among them. Every surface shows the same facts.
//
// The package is pure and has no goroutines.
package facts
