// Package strictjson decodes JSON and refuses ambiguous input.
//
// Package encoding/json is lenient. It replaces bytes that are not UTF-8 and lone halves of
// surrogate pairs. It uses the last of two members with the same name, and accepts "WRITE"
// for "write". Two programs can read such a text differently, and a path with a replaced
// byte is another path. This package refuses all of these.
//
// The package owns no goroutines.
package strictjson
