// Package jsonform holds JSON values against the schemas that this program gives to agents
// and publishes.
//
// It knows what those schemas are written with, and refuses any other: type, properties,
// required, additionalProperties, items, minItems, enum of texts, pattern; title,
// description, format and $schema are for whoever reads them. Validators of everything that
// a schema can say get ready when the program starts, which takes them longer than
// all other packages together; and whatever runs in a sandbox starts this program twice.
//
// Invariants:
//
//  1. A schema is complete in itself: nothing is loaded from anywhere.
//  2. What it accepts, every validator of draft 2020-12 accepts, and the other way round,
//     but for integers: they are to be written as such, and to fit 64 bits, because that
//     is how they are read afterwards. Patterns are those of package regexp.
//  3. Of several faults it names the same one every time.
//
// The package owns no goroutines.
package jsonform
