// Package config reads lockkeeper.yaml, the environment and the flags into one
// Config, and records where every value came from.
//
// The struct Config is the only description of the file: its tags name each key, its
// environment variable, its limits and its meaning. The decoder, the sample file, the
// defaults, the flags and the listing of values are all generated from it. So are the
// published JSON schema (docs/lockkeeper.schema.json) and the reference (docs/config.md). To
// add a setting, add a field and run go generate ./internal/project/config.
//
// Invariants:
//
//  1. A later source wins: default, file, environment, flag. An invalid value is
//     refused even if a later source replaces it.
//  2. An unknown key, a wrong type, a value out of range, an anchor or a second document
//     is an error that names the file, line and column. All errors of a file are
//     reported at once, one per line.
//  3. A Config that Load returned is valid: every lease expires within a bounded time,
//     every heartbeat is shorter than its lease, and the paths that the gate may write
//     to are below the root. Package resource checks the rows of tables against each
//     other.
//  4. No password of a store address appears in an error or in Values.
//
// The package starts no goroutines, has no state, and does not read the JSON schema,
// because Load runs at the start of every command.
package config

//go:generate go test -run IsCurrent -update
