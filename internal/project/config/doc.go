// Package config reads lockkeeper.yaml, the environment and the flags into one
// Config, and remembers of every value where it came from.
//
// The struct Config is the only description of the file: its tags name each
// key, its environment variable, its limits and its meaning. The decoder, the
// sample file, the listing of values, the published JSON schema
// (docs/lockkeeper.schema.json) and the reference (docs/config.md) are all drawn from it.
//
// Invariants:
//
//  1. A later source wins: default, file, environment, flag. A wrong value is
//     refused even where a later source would have replaced it.
//  2. Nothing is guessed: an unknown key, a wrong type, a value out of its
//     limits, an anchor or a second document is an error that names the file,
//     line and column. All errors of a file are reported at once, a line each.
//  3. A Config that Load returned is valid: no lease is without an end or so
//     long that it is none, every heartbeat comes before its lease ends, and what
//     the gate may write to is named and lies below the root.
//     What the rows of tables mean to each other is package resource's to judge.
//  4. No password of a store address appears in an error or in Values.
//
// The package starts no goroutines, keeps no state, and does not touch the
// JSON schema when it loads: Load runs at the start of every command.
package config

//go:generate go test -run IsCurrent -update
