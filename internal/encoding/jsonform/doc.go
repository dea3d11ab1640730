// Package jsonform validates JSON values against the JSON schemas that this program
// publishes and gives to agents.
//
// It supports the keywords that those schemas use and refuses all others: type, properties,
// required, additionalProperties, items, minItems, enum of strings, and pattern. It ignores
// title, description, format and $schema. A full validator would take longer to initialize
// than all other packages together, and every sandboxed command starts this program twice.
//
// Invariants:
//
//  1. A schema is self-contained: nothing is loaded from elsewhere.
//  2. It accepts exactly what any draft 2020-12 validator accepts, with one exception:
//     integers must be written without a fraction and fit 64 bits, because they are
//     decoded that way later. Patterns use the syntax of package regexp.
//  3. If a value has several faults, it always reports the same one.
//
// The package has no goroutines.
package jsonform
