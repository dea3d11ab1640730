// Command lockkeeper lets many coding agents and people change one codebase at
// the same time without writing over each other. `lockkeeper --help` says how.
package main
