// Command lockkeeper lets many coding agents and people change one codebase at the same
// time without overwriting each other. `lockkeeper --help` lists its commands.
package main
