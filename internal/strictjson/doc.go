// Package strictjson reads JSON that says one thing only.
//
// Package encoding/json reads more than was written: it replaces bytes that are not UTF-8,
// takes the last of two members with one name, and takes "WRITE" for "write". Two programs
// that read such a text may understand different things, and a path with a replaced byte is
// another path. This package refuses all three.
//
// The package owns no goroutines.
package strictjson
