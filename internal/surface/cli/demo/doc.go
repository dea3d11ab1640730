// Package demo has the command demo, which runs a flow in a temporary directory and proves from
// the event log that no write overwrote another.
package demo
